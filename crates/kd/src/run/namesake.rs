//! The notice about another program called `kd` on the PATH, after `kd doctor` and `kd init`.

use super::here::Here;
use super::notices::notice_line;
use kd_app::setup::namesake;
use std::path::PathBuf;

/// Says on stderr which program typing `kd` starts, if there is more than one.
pub(super) fn tell(here: &Here) {
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    // The npm package starts this program by a script, and passes the script's path as `argv[0]`.
    let launcher = std::env::args_os().next().map(PathBuf::from);
    let launcher = launcher.filter(|path| path.is_absolute());
    let own: Vec<PathBuf> = launcher.into_iter().chain([program.clone()]).collect();
    let Some(other) = namesake(&own, here) else {
        return;
    };
    let path = other.path.display();
    if !other.starts {
        notice_line(&format!(
            "note: another program is called kd: {path}; typing `kd` starts this one"
        ));
        return;
    }
    let program = own.first().unwrap_or(&program);
    notice_line(&format!(
        "warning: typing `kd` starts another program, {path}, not {}",
        program.display()
    ));
    let folder = program.parent().unwrap_or(program).display();
    notice_line(&format!(
        "help: kingdom-cli also installs a kd; uninstall it, or put {folder} first on the PATH"
    ));
}

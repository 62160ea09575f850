//! `kd acp`: serves the Agent Client Protocol on stdin and stdout until stdin is closed.

use super::here::Here;
use super::mcp::signals;
use crate::args::acp::Acp;
use crate::error::Error;
use crate::exit::Exit;
use kd_app::host::{Host, Refusal};
use kd_app::{Env, FolderHost, Kingdom, Runtime};
use kd_server::acp::{self, OpenFolder};
use std::path::Path;
use std::sync::Arc;

pub(super) fn run(args: &Acp, here: &Here) -> Result<Exit, Error> {
    let offline = args.offline;
    let open: OpenFolder = Arc::new(move |folder: &Path| {
        let kingdom = Kingdom::open_with(Env::process().in_folder(folder));
        let kingdom = kingdom.map_err(|why| Refusal(why.as_line()))?;
        kingdom.sweep();
        Ok(Arc::new(FolderHost::new(kingdom, offline)) as Arc<dyn Host>)
    });
    let folder = here.folder()?.to_path_buf();
    let runtime = Runtime::new()?;
    let served = runtime.block_on(async {
        let mut signals = signals()?;
        let stop = async move { signals.stopped().await };
        acp::stdio(open, folder, stop)
            .await
            .map_err(|why| Error::new("acp", Exit::Error, "the connection was lost").because(why))
    });
    drop(runtime);
    served.map(|()| Exit::Done)
}

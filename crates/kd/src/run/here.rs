//! The environment and the terminal of a command. The only file of the program that looks at them for the commands.

use super::notices;
use crate::args::Color;
use crate::render::style::Styles;
use kd_app::Env;
use std::io::{self, IsTerminal};
use std::ops::Deref;

/// The environment of a command, and how its output is decorated.
pub(super) struct Here {
    color: Color,
    env: Env,
}

impl Deref for Here {
    type Target = Env;

    fn deref(&self) -> &Env {
        &self.env
    }
}

impl Here {
    pub(super) fn new(color: Color) -> Self {
        Self {
            color,
            env: Env::process().telling(notices::printer()),
        }
    }

    /// Whether output is colored.
    pub(super) fn color(&self) -> Color {
        self.color
    }

    /// The environment, for the library.
    pub(super) fn env(&self, quiet: bool) -> Env {
        self.env.quiet(quiet)
    }

    /// Returns the styles of stdout.
    pub(super) fn out_styles(&self) -> Styles {
        self.styles(io::stdout().is_terminal())
    }

    /// Returns the styles of stderr.
    pub(super) fn err_styles(&self) -> Styles {
        self.styles(io::stderr().is_terminal())
    }

    fn styles(&self, terminal: bool) -> Styles {
        Styles::decide(self.color.into(), terminal, &|name| self.var(name))
    }

    /// Returns whether stdout is a terminal on which lines can be repainted, and the user allows it.
    pub(super) fn can_repaint(&self) -> bool {
        let dumb = self.var("TERM").is_none_or(|t| t.is_empty() || t == "dumb");
        io::stdout().is_terminal() && !dumb && !self.is_on("ACCESSIBLE")
    }

    /// Returns the columns for text on stdout: the terminal's, or 80 without a terminal.
    pub(super) fn columns(&self) -> usize {
        kd_tui::terminal::size().map_or(80, |(columns, _)| columns.into())
    }
}

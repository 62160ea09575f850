//! A forum on another machine, which local agents visit.

use super::site::Site;
use super::token::TokenSocket;
use crate::env::Env;
use crate::error::{ErrorKind, UserError};
use kd_backends::remote::RemoteForum;
use kd_core::Failure;
use kd_core::request::ToolServer;
use kd_store::user_dirs::make_private;

/// A remote forum, ready to be called, and its token for the tool server that an agent program starts.
pub(super) struct Remote {
    forum: RemoteForum,
    /// Agent programs never learn the token. `None` if no agent is such a program.
    token: Option<TokenSocket>,
}

impl Remote {
    /// Finds a forum in the configuration, with its token.
    ///
    /// `has_programs` says whether an agent is a program, which calls tools through kd's server.
    pub(super) fn find(
        name: &str,
        site: &Site,
        has_programs: bool,
        env: &Env,
    ) -> Result<Self, UserError> {
        let Some(config) = site.config.forum.remotes.get(name) else {
            let known: Vec<&str> = site
                .config
                .forum
                .remotes
                .keys()
                .map(String::as_str)
                .collect();
            let error =
                UserError::usage(format!("there is no forum `{name}` under `forum.remotes`"));
            return Err(match known.as_slice() {
                [] => error.next(format!(
                    "kd config set --layer user forum.remotes.{name}.url https://HOST/mcp"
                )),
                known => error.because(format!("forums are: {}", known.join(", "))),
            });
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let forum = runtime.block_on(RemoteForum::open(name, config, &env.of_backends(false)));
        let forum = forum.map_err(refused)?;
        let listen = || {
            let folder = env.user_dirs().runtime()?;
            make_private(&folder)?;
            TokenSocket::listen(&folder, &forum)
        };
        let token = has_programs.then(listen).transpose()?;
        Ok(Self { forum, token })
    }

    /// Returns the forum, and the socket, which exists as long as its value.
    pub(super) fn split(self) -> (RemoteForum, Option<TokenSocket>) {
        (self.forum, self.token)
    }

    /// Returns the tool server for an agent program, acting in that forum.
    pub(super) fn serve(&self, mut server: ToolServer) -> Option<ToolServer> {
        let token = self.token.as_ref()?.path().to_str()?.to_owned();
        let words = [
            ("--remote", self.forum.name()),
            ("--remote-url", self.forum.url()),
            ("--remote-token", token.as_str()),
        ];
        for (flag, value) in words {
            server.args.extend([flag.to_owned(), value.to_owned()]);
        }
        Some(server)
    }
}

fn refused(failure: Failure) -> UserError {
    let error = UserError::new(ErrorKind::Forum, failure.message.clone());
    match failure.advice {
        Some(advice) => error.next(advice),
        None => error,
    }
}

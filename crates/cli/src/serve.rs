//! `consistory serve`: the local page.

use std::net::SocketAddr;

use consistory_serve::{Limits, Server};

use crate::args::ServeArgs;
use crate::error::{CliError, OK};
use crate::interrupt;
use crate::output::print;

/// Serves the page until it is interrupted.
pub(crate) fn serve(args: &ServeArgs) -> Result<u8, CliError> {
    let address = SocketAddr::new(args.listen, args.port);
    let limits = Limits {
        analysis_time: args.budget,
        analysis_memory: args.memory,
        body_bytes: usize::try_from(args.body).unwrap_or(usize::MAX),
        ..Limits::default()
    };
    let server = Server::bind(address, limits).map_err(|error| {
        CliError::with_hint(
            format!("cannot listen on {address}: {error}"),
            "choose another port with --port, or 0 for any that is free",
        )
    })?;
    let is_local = server.address().ip().is_loopback();
    let mut text = format!("{}\n", server.url());
    if !is_local {
        text += "Others on the network can reach this page if they know its token.\n";
    }
    text += "Open the address in a browser; Ctrl-C ends the server.\n";
    print(text)?;
    server
        .run(&interrupt::flag())
        .map_err(|error| CliError::usage(format!("the server stopped: {error}")))?;
    Ok(OK)
}

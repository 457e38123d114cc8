//! Arguments of `serve`.

use std::net::IpAddr;
use std::time::Duration;

use clap::Args;

use crate::units;

pub(super) const SERVE_HELP: &str = "\
The page judges histories, litmus tests, protocols and models of your own as you type. It opens no
file, and it is reachable from this machine only, with the token of the address that is printed.

Examples:
  consistory serve
  consistory serve --port 8080

Exit code: 0 when it is interrupted, 2 if it cannot listen.";

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Port to listen on; 0 for any free port.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,
    /// Address to listen on; any other than a loopback address can be reached from other machines.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) listen: IpAddr,
    /// Time limit of each request, such as 500ms, 30s.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = units::duration)]
    pub(crate) budget: Duration,
    /// Memory limit of each request, such as 512MiB.
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = units::size)]
    pub(crate) memory: u64,
    /// Largest size of a text, such as 4MiB.
    #[arg(long, value_name = "SIZE", default_value = "4MiB", value_parser = units::size)]
    pub(crate) body: u64,
}

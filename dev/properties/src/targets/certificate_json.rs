//! Certificates in JSON: reading always ends, and a certificate is unchanged after writing and
//! reading.

use std::sync::LazyLock;

use crate::{CERTIFIED, bytes::Bytes, history, json};
use consistory_certify::certify;
use consistory_history::History;
use consistory_verdict::{Certificate, Verdict, read_certificate, write_certificate};

static HISTORY: LazyLock<History> = LazyLock::new(|| history(CERTIFIED));

/// Checks one input.
pub fn run(data: &[u8]) {
    // A zero byte, which no JSON starts with, selects certificates built from parts.
    let json = match data.split_first() {
        Some((0, parts)) => Ok(json::certificate(&mut Bytes(parts))),
        _ => serde_json::from_slice(data),
    };
    let Ok(json) = json else { return };
    let certificate = match read_certificate(&HISTORY, &json) {
        Ok(certificate) => certificate,
        Err(error) => return drop(error.to_string()),
    };
    let text = written(&certificate);
    let json = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let again = read_certificate(&HISTORY, &json).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(again, certificate, "{text}");
    assert_eq!(written(&again), text);
    for model in ["cc", "ccv", "cm", "sc", "tso", "wsc"] {
        for claim in [Verdict::Consistent, Verdict::Violation] {
            if let Err(rejection) = certify(&HISTORY, model, claim, &certificate) {
                drop(rejection.to_string());
            }
        }
    }
}

fn written(certificate: &Certificate) -> String {
    let mut out = Vec::new();
    write_certificate(&HISTORY, certificate, &mut out).expect("a list of bytes takes everything");
    String::from_utf8(out).expect("JSON is text")
}

//! Common interface of the parsers: lines in, histories and diagnostics out.

use std::collections::VecDeque;
use std::sync::Arc;

use consistory_diagnostic::Diagnostics;
pub(crate) use consistory_diagnostic::{Cursor, Fault, beyond_i64};
use consistory_history::{
    Action, Details, History, HistoryBuilder, HistoryError, SessionId, Status,
};
use consistory_verdict::Budget;

use crate::limits::Limits;

/// A parser of one format, which receives line by line.
pub(crate) trait Parse: Send {
    /// Parses the next line.
    fn line(&mut self, line: Line<'_>, sink: &mut Sink);

    /// Ends the input.
    fn end(&mut self, sink: &mut Sink);
}

/// A line without its line terminator.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    /// Line number, counted from 1.
    pub(crate) number: u64,
    /// Text of the line.
    pub(crate) text: &'a str,
}

impl<'a> Line<'a> {
    /// Returns a cursor at the content of the line; `None` if it is empty or a comment that starts
    /// with `#`.
    pub(crate) fn content(self) -> Option<Cursor<'a>> {
        let text = self.text.split('#').next().unwrap_or_default().trim_end();
        let mut cursor = Cursor::new(text);
        cursor.skip_spaces();
        (!cursor.is_done()).then_some(cursor)
    }
}

/// Collector of the results of parsers: histories and diagnostics.
pub(crate) struct Sink {
    pub(crate) source: Arc<str>,
    pub(crate) finished: VecDeque<History>,
    pub(crate) diagnostics: Diagnostics,
    /// Limits, for parsers that do much work between two lines.
    pub(crate) limits: Limits,
}

impl Sink {
    pub(crate) fn new(source: Arc<str>) -> Self {
        Sink::limited(source, &Limits::new(Budget::unlimited()))
    }

    pub(crate) fn limited(source: Arc<str>, limits: &Limits) -> Self {
        let (finished, diagnostics) = (VecDeque::new(), Diagnostics::default());
        Sink { source, finished, diagnostics, limits: limits.clone() }
    }

    /// Reports an error.
    #[cold]
    pub(crate) fn report(&mut self, line: Line<'_>, fault: Fault) {
        let Fault { span, message, hint } = fault;
        self.diagnostics.push(&self.source, line.number, line.text, span, message, hint);
    }

    /// Finishes the history under construction, unless nothing was added to it.
    pub(crate) fn finish(&mut self, builder: &mut HistoryBuilder, line: Line<'_>) {
        let builder = std::mem::take(builder);
        if builder.is_empty() {
            return;
        }
        let limits = &self.limits;
        match builder.finish_while(&mut || limits.goes_on()) {
            // The reader reports the limit that was reached.
            Err(HistoryError::Stopped) => {}
            // A malformed input yields no history.
            Ok(_) if !self.diagnostics.is_empty() => {}
            Ok(history) => self.finished.push_back(history),
            Err(error) => self.report(line, Fault::new(0..line.text.len(), error.to_string())),
        }
    }
}

/// The operations of a transaction that is not complete yet.
///
/// A transaction of one operation becomes a plain operation.
#[derive(Default)]
pub(crate) struct Group {
    actions: Vec<Action>,
}

impl Group {
    pub(crate) fn push(&mut self, action: Action) {
        self.actions.push(action);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    pub(crate) fn close(
        &mut self,
        builder: &mut HistoryBuilder,
        session: SessionId,
        status: Status,
    ) {
        let mut details = Details::default();
        if self.actions.len() > 1 {
            let transaction = builder.begin_transaction();
            builder.set_transaction_status(transaction, status);
            details.transaction = Some(transaction);
        } else {
            details.status = status;
        }
        for action in self.actions.drain(..) {
            builder.push_with(session, action, details);
        }
    }
}

#[inline]
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

/// Returns the candidate that is most similar to a misspelt word, if one is similar enough.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    consistory_diagnostic::nearest(word, candidates).first().copied()
}

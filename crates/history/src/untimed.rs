//! Histories without times, for tools that do not support them.

use crate::history::{Action, History, Status, Transaction};
use crate::ids::OpId;

impl History {
    /// Returns the history without times and with as few statuses other than ok as possible.
    ///
    /// Operations that do not count are omitted: operations that failed, and indeterminate reads.
    /// Indeterminate writes and appends count as successful if they are the last of their session:
    /// a read from one shows that it took effect, and one that was never read can be ordered after
    /// everything else, as if it had not taken effect. If other operations follow it in its
    /// session, it keeps its status.
    pub fn without_times(&self) -> History {
        let is_kept = |op: &OpId| match (self.status(*op), self.action(*op)) {
            (Status::Fail, _) | (Status::Unknown, Action::Read { .. }) => false,
            (Status::Ok | Status::Unknown, _) => true,
        };
        let is_settled = |ops: &std::ops::Range<u32>| {
            let session = self.session_of(OpId(ops.start));
            let is_plain = |op: OpId| {
                use Action::{Append, Read, Write};
                matches!(self.action(op), Read { .. } | Write { .. } | Append { .. })
            };
            self.session_starts[session.index() + 1] == ops.end
                && ops.clone().map(OpId).all(is_plain)
        };
        let settled = |status: Status, ops: &std::ops::Range<u32>| match status {
            Status::Unknown if is_settled(ops) => Status::Ok,
            status => status,
        };
        // Number of kept operations before each operation.
        let mut kept_before = vec![0];
        let mut statuses = Vec::new();
        for run in self.all_transactions() {
            for op in run.ops.clone().map(OpId) {
                if is_kept(&op) {
                    statuses.push(settled(self.own_status(op), &run.ops));
                }
                kept_before.push(statuses.len() as u32);
            }
        }
        let transactions: Vec<Transaction> = (self.transactions.iter())
            .map(|transaction| {
                let ops = &transaction.ops;
                Transaction {
                    ops: kept_before[ops.start as usize]..kept_before[ops.end as usize],
                    status: settled(transaction.status, ops),
                }
            })
            .filter(|transaction| !transaction.ops.is_empty())
            .collect();
        if statuses.iter().all(|&status| status == Status::Ok) {
            statuses.clear();
        }
        History {
            session_starts: (self.session_starts.iter())
                .map(|&start| kept_before[start as usize])
                .collect(),
            session_of: self.ops().filter(is_kept).map(|op| self.session_of(op)).collect(),
            actions: self.ops().filter(is_kept).map(|op| self.actions[op.index()]).collect(),
            statuses,
            times: Vec::new(),
            transactions,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Action, Details, HistoryBuilder, Interval, Status};

    #[test]
    fn what_counts_for_nothing_is_left_out_and_unknown_writes_at_the_end_count() {
        let mut builder = HistoryBuilder::new();
        let key = builder.key("x");
        let mut push = |session: &str, write: Option<i64>, read: i64, status: Status| {
            let session = builder.session(session);
            let action = match write {
                Some(value) => Action::Write { key, value: builder.int(value) },
                None => Action::Read { key, value: builder.int(read) },
            };
            let time = Some(Interval { start: 1, end: Some(2) });
            builder.push_with(session, action, Details { status, time, ..Details::default() });
        };
        push("a", Some(1), 0, Status::Ok);
        push("a", Some(2), 0, Status::Fail);
        push("a", None, 1, Status::Ok);
        push("b", Some(3), 0, Status::Unknown);
        push("b", None, 3, Status::Ok);
        push("c", Some(4), 0, Status::Unknown);
        push("d", None, 4, Status::Unknown);
        let history = builder.finish().unwrap().without_times();
        let shown: Vec<String> = history
            .ops()
            .map(|op| {
                format!("{} {} {:?}", history.reference(op), history.show(op), history.status(op))
            })
            .collect();
        assert_eq!(
            shown,
            [
                "a:0 w(x,1) Ok",
                "a:1 r(x,1) Ok",
                "b:0 w(x,3) Unknown",
                "b:1 r(x,3) Ok",
                "c:0 w(x,4) Ok"
            ]
        );
        assert!(history.ops().all(|op| history.time(op).is_none()));
    }
}

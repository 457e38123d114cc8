//! A bank, as in Jepsen's bank workload: transfers between accounts, and reads of all balances.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use consistory_history::Value;

use crate::signatures::signatures;
use crate::specification::{Method, Specification};

static METHODS: LazyLock<Vec<Method>> = LazyLock::new(|| {
    signatures(
        "
        transfer(transfer)
        transfer(from, to, amount)
        read read() -> unordered as balances
        ",
    )
});

/// Accounts with balances. A transfer takes an amount from one account and adds it to another,
/// whatever their balances are; a read returns the pairs `[account,balance]` of all accounts.
///
/// A refused transfer is a failed call, and the specification does not say which transfers a bank
/// must refuse. So only the returns of reads are checked, which includes that the total amount is
/// preserved.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bank {
    /// The balances before the first transfer.
    pub initial: BTreeMap<Value, i64>,
}

impl Bank {
    /// Parses balances: `0=10 1=20`, or `8*10` for the accounts 0 to 7 with 10 each.
    pub fn parse(text: &str) -> Option<Bank> {
        const MAX_ACCOUNTS: i64 = 100_000;
        let mut initial = BTreeMap::new();
        if let Some((accounts, balance)) = text.split_once('*') {
            let (accounts, balance) = (accounts.trim().parse().ok()?, balance.trim().parse().ok()?);
            if !(1..=MAX_ACCOUNTS).contains(&accounts) {
                return None;
            }
            initial.extend((0..accounts).map(|account| (Value::Int(account), balance)));
            return Some(Bank { initial });
        }
        for binding in text.split([' ', ',']).filter(|binding| !binding.is_empty()) {
            let (account, balance) = binding.split_once('=')?;
            let account = match account.parse() {
                Ok(number) => Value::Int(number),
                Err(_) => Value::Str(account.into()),
            };
            if initial.insert(account, balance.parse().ok()?).is_some() {
                return None;
            }
        }
        (!initial.is_empty()).then_some(Bank { initial })
    }
}

/// Parses a transfer: a list of pairs, which is how histories represent a map.
fn transfer(value: &Value) -> Option<(Value, Value, i64)> {
    let Value::List(pairs) = value else { return None };
    let field = |name: &str| {
        pairs.iter().find_map(|pair| match pair {
            Value::List(pair) => match &pair[..] {
                [Value::Str(key), value] if **key == *name => Some(value.clone()),
                _ => None,
            },
            _ => None,
        })
    };
    match field("amount")? {
        Value::Int(amount) => Some((field("from")?, field("to")?, amount)),
        _ => None,
    }
}

impl Specification for Bank {
    type State = BTreeMap<Value, i64>;

    fn show(&self, state: &BTreeMap<Value, i64>) -> Option<String> {
        super::shown::map(state)
    }

    fn initial(&self) -> Self::State {
        self.initial.clone()
    }

    fn invoke(&self, accounts: &mut Self::State, method: &str, args: &[Value]) -> Option<Value> {
        let (from, to, amount) = match (method, args) {
            ("read", []) => {
                let pair = |(account, &balance): (&Value, &i64)| {
                    Value::List(vec![account.clone(), Value::Int(balance)])
                };
                return Some(Value::List(accounts.iter().map(pair).collect()));
            }
            ("transfer", [whole]) => transfer(whole)?,
            ("transfer", [from, to, Value::Int(amount)]) => (from.clone(), to.clone(), *amount),
            _ => return None,
        };
        for (account, amount) in [(from, amount.checked_neg()?), (to, amount)] {
            let balance = accounts.get_mut(&account)?;
            *balance = balance.checked_add(amount)?;
        }
        Some(Value::Null)
    }

    fn methods(&self) -> &[Method] {
        &METHODS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balances_are_read_in_two_notations() {
        let bank = Bank::parse("2*10").unwrap();
        assert_eq!(bank, Bank::parse("0=10, 1=10").unwrap());
        for text in ["", "0*10", "1=2 1=3", "x", "a=b"] {
            assert_eq!(Bank::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_transfer_moves_money() {
        let bank = Bank::parse("0=10 b=0").unwrap();
        let mut accounts = bank.initial();
        let (from, to) = (Value::Int(0), Value::Str("b".into()));
        let args = [from.clone(), to.clone(), Value::Int(3)];
        assert_eq!(bank.invoke(&mut accounts, "transfer", &args), Some(Value::Null));
        let field = |name: &str, value: Value| Value::List(vec![Value::Str(name.into()), value]);
        let map = Value::List(vec![
            field("from", to.clone()),
            field("to", from.clone()),
            field("amount", Value::Int(1)),
        ]);
        assert_eq!(bank.invoke(&mut accounts, "transfer", &[map]), Some(Value::Null));
        let pair = |account: Value, balance| Value::List(vec![account, Value::Int(balance)]);
        let expected = Value::List(vec![pair(from.clone(), 8), pair(to, 2)]);
        assert_eq!(bank.invoke(&mut accounts, "read", &[]), Some(expected));
        let nowhere = [from, Value::Int(7), Value::Int(1)];
        assert_eq!(bank.invoke(&mut accounts, "transfer", &nowhere), None);
    }
}

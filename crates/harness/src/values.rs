//! Conversions between Rust types and the values of histories, for arguments and returns.

use consistory_history::Value;

use crate::signature::Sort;

/// A type that a method can take as an argument.
pub trait Argument: Sized {
    /// The kind of values that programs use for the type.
    const SORT: Sort;

    /// Converts a value; `None` if it does not fit this type.
    fn from_value(value: &Value) -> Option<Self>;
}

/// The arguments of a method: `()`, one argument, a tuple or an array.
pub trait Arguments: Sized {
    /// The kind of each argument.
    fn sorts() -> Vec<Sort>;

    /// Converts the arguments; `None` if they do not have these types.
    fn from_values(values: &[Value]) -> Option<Self>;
}

/// A type that a method can return.
pub trait Answer {
    /// Converts to a value of histories.
    fn into_value(self) -> Value;
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Argument for $type {
            const SORT: Sort = Sort::Int;

            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Int(i) => (*i).try_into().ok(),
                    _ => None,
                }
            }
        }

        impl Answer for $type {
            /// Builds an integer; one that is out of range becomes a text.
            fn into_value(self) -> Value {
                match i64::try_from(self) {
                    Ok(i) => Value::Int(i),
                    Err(_) => Value::Str(self.to_string().into()),
                }
            }
        }
    )*};
}

integers! { i8 i16 i32 i64 isize u8 u16 u32 u64 usize }

impl Argument for bool {
    const SORT: Sort = Sort::Bool;

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(b) => Some(*b),
            _ => None,
        }
    }
}

impl Argument for String {
    const SORT: Sort = Sort::Text;

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Str(text) => Some(text.to_string()),
            _ => None,
        }
    }
}

impl Argument for Value {
    const SORT: Sort = Sort::Int;

    fn from_value(value: &Value) -> Option<Self> {
        Some(value.clone())
    }
}

impl<A: Argument> Arguments for A {
    fn sorts() -> Vec<Sort> {
        vec![A::SORT]
    }

    fn from_values(values: &[Value]) -> Option<Self> {
        match values {
            [value] => A::from_value(value),
            _ => None,
        }
    }
}

impl<A: Argument, const N: usize> Arguments for [A; N] {
    fn sorts() -> Vec<Sort> {
        vec![A::SORT; N]
    }

    fn from_values(values: &[Value]) -> Option<Self> {
        let args: Option<Vec<A>> = values.iter().map(A::from_value).collect();
        args?.try_into().ok()
    }
}

macro_rules! tuples {
    ($(($($name:ident)*))*) => {$(
        impl<$($name: Argument),*> Arguments for ($($name,)*) {
            fn sorts() -> Vec<Sort> {
                vec![$($name::SORT),*]
            }

            fn from_values(values: &[Value]) -> Option<Self> {
                let mut values = values.iter();
                let args = ($($name::from_value(values.next()?)?,)*);
                values.next().is_none().then_some(args)
            }
        }
    )*};
}

tuples! { () (A) (A B) (A B C) (A B C D) }

impl Answer for () {
    fn into_value(self) -> Value {
        Value::Null
    }
}

impl Answer for bool {
    fn into_value(self) -> Value {
        Value::Bool(self)
    }
}

impl Answer for &str {
    fn into_value(self) -> Value {
        Value::Str(self.into())
    }
}

impl Answer for String {
    fn into_value(self) -> Value {
        Value::Str(self.into())
    }
}

impl Answer for Value {
    fn into_value(self) -> Value {
        self
    }
}

impl<A: Answer> Answer for Option<A> {
    fn into_value(self) -> Value {
        self.map_or(Value::Null, A::into_value)
    }
}

impl<A: Answer> Answer for Vec<A> {
    fn into_value(self) -> Value {
        Value::List(self.into_iter().map(A::into_value).collect())
    }
}

impl<A: Answer, B: Answer> Answer for (A, B) {
    fn into_value(self) -> Value {
        Value::List(vec![self.0.into_value(), self.1.into_value()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_by_their_types() {
        let (one, text) = (Value::Int(1), Value::Str("a".into()));
        let both = [one.clone(), text.clone()];
        assert_eq!(<(u8, String)>::from_values(&both), Some((1, "a".to_owned())));
        assert_eq!(<(u8, u8)>::from_values(&both), None);
        assert_eq!(<(u8,)>::from_values(&both), None);
        assert_eq!(<()>::from_values(&[]), Some(()));
        assert_eq!(u64::from_values(&[Value::Int(-1)]), None);
        assert_eq!(<[i64; 2]>::from_values(&[one.clone(), one]), Some([1, 1]));
        assert_eq!(<[i64; 2]>::from_values(&[text]), None);
    }

    #[test]
    fn answers_are_the_values_of_the_notation() {
        let shown = |value: Value| value.to_string();
        assert_eq!(shown(None::<i64>.into_value()), "null");
        assert_eq!(shown(Some(vec![(1, true)]).into_value()), "[[1,true]]");
        assert_eq!(shown(u64::MAX.into_value()), "\"18446744073709551615\"");
    }
}

//! The systems that can be tested.

pub(crate) mod command;
pub(crate) mod etcd;
pub(crate) mod galera;
pub(crate) mod mariadb;
pub(crate) mod postgres;
pub(crate) mod redis;
pub(crate) mod sqlite;

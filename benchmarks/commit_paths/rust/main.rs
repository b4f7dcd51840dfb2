//! A server around openraft, so that a client can measure it from elsewhere.
//!
//!     rust NUMBER ADDRESS,ADDRESS,… FOLDER
//!
//! It answers clients as the servers of `go/main.go` do, and the others at the same port. Log and
//! state are in memory. What is logged is in a file too, which is flushed.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::Cursor;
use std::ops::RangeBounds;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::{routing::post, serve::ListenerExt};
use openraft::storage::{LogFlushed, LogState, RaftLogStorage};
use openraft::*;
use tokio::{fs::File, io::AsyncWriteExt, sync::RwLock};
use zlayer_consensus::network::{http_client::HttpNetwork, http_service::raft_service_router};
use zlayer_consensus::storage::mem_store::{MemLogReader, MemLogStore, MemStateMachine, SmData};

declare_raft_types!(Types: D = u64, R = u64);

type Applied = Arc<RwLock<SmData<Types, u64>>>;
type Stored<T> = Result<T, StorageError<u64>>;

/// The log in memory, and a file that has an entry, flushed, before the log has it.
struct Flushed(MemLogStore<Types>, File);

impl Flushed {
    async fn flush(&mut self, what: impl Debug) -> Stored<()> {
        let line = format!("{what:?}\n");
        let written = self.1.write_all(line.as_bytes()).await;
        let flushed = written.and(self.1.sync_data().await);
        Ok(flushed.map_err(|error| StorageIOError::write(&error))?)
    }
}

impl RaftLogReader<Types> for Flushed {
    async fn try_get_log_entries<R>(&mut self, range: R) -> Stored<Vec<Entry<Types>>>
    where
        R: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        self.0.try_get_log_entries(range).await
    }
}

impl RaftLogStorage<Types> for Flushed {
    type LogReader = MemLogReader<Types>;

    async fn save_vote(&mut self, vote: &Vote<u64>) -> Stored<()> {
        self.flush(vote).await?;
        self.0.save_vote(vote).await
    }
    async fn append<I>(&mut self, entries: I, flushed: LogFlushed<Types>) -> Stored<()>
    where
        I: IntoIterator<Item = Entry<Types>> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries = Vec::from_iter(entries);
        self.flush(&entries).await?;
        self.0.append(entries, flushed).await
    }
    delegate::delegate! { to self.0 {
        async fn read_vote(&mut self) -> Stored<Option<Vote<u64>>>;
        async fn get_log_state(&mut self) -> Stored<LogState<Types>>;
        async fn get_log_reader(&mut self) -> MemLogReader<Types>;
        async fn truncate(&mut self, from: LogId<u64>) -> Stored<()>;
        async fn purge(&mut self, to: LogId<u64>) -> Stored<()>;
    } }
}

/// Answer a client.
async fn operation(
    State((raft, applied)): State<(Raft<Types>, Applied)>,
    Path((name, number)): Path<(String, u64)>,
) -> Result<String, String> {
    match name.as_str() {
        "write" => drop(raft.client_write(number).await.map_err(|e| e.to_string())?),
        "verified" => {
            raft.ensure_linearizable()
                .await
                .map_err(|e| e.to_string())?;
        }
        "leader" => return Ok(raft.current_leader().await.ok_or("none")?.to_string()),
        "stale" => (),
        _ => return Err("no such operation".into()),
    }
    Ok(applied.read().await.state.to_string())
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().collect();
    let number: usize = words[1].parse()?;
    let hosts = Vec::from_iter(words[2].split(',').map(|it| format!("{it}:7000")));
    let config = Config {
        heartbeat_interval: 1000, // the limit of a message too
        election_timeout_min: 3000,
        election_timeout_max: 6000,
        snapshot_policy: SnapshotPolicy::Never,
        ..Default::default()
    };
    let (network, file) = (HttpNetwork::new(), File::create(words[3].clone() + "/log"));
    let log = Flushed(MemLogStore::new(), file.await?);
    let state = MemStateMachine::new(|old: &mut u64, new: &u64| std::mem::replace(old, *new));
    let applied = state.data();
    let raft = Raft::new(number as u64, config.into(), network, log, state).await?;
    if number == 0 {
        let nodes = (0..).zip(hosts.iter().map(BasicNode::new));
        raft.initialize(BTreeMap::from_iter(nodes)).await?;
    }
    let operations = post(operation).with_state((raft.clone(), applied));
    let routes = raft_service_router(raft, None).route("/{operation}/{number}", operations);
    let wire = tokio::net::TcpListener::bind(&hosts[number]).await?;
    let wire = wire.tap_io(|wire| wire.set_nodelay(true).unwrap());
    Ok(axum::serve(wire, routes).await?)
}

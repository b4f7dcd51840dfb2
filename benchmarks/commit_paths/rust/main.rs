//! A server around openraft, so that a client can measure it from elsewhere.
//!
//!     rust NUMBER ADDRESS,ADDRESS,… FOLDER
//!
//! It answers clients as the servers of `go/main.go` do, and the others at the same port. Log and
//! state are openraft's own store in memory. What is logged is in a file too, which is flushed.

use std::fmt::Debug;
use std::io::{Cursor, Write};
use std::ops::RangeBounds;
use std::{fs::File, sync::Arc};

use axum::extract::{Path, State};
use axum::routing::post;
use axum::{serve::ListenerExt, Json, Router};
use openraft::{error::*, network::*, raft::*, storage::*, *};
use openraft_memstore::{ClientRequest, ClientResponse, MemStore, TypeConfig as Types};
use serde::{de::DeserializeOwned, Serialize};

type Stored<T> = Result<T, StorageError<u64>>;
type Sent<T, E = Infallible> = Result<T, RPCError<u64, (), RaftError<u64, E>>>;

struct Flushed(Arc<MemStore>, Arc<File>);

impl RaftLogReader<Types> for Flushed {
    async fn try_get_log_entries<R>(&mut self, range: R) -> Stored<Vec<Entry<Types>>>
    where
        R: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        self.0.try_get_log_entries(range).await
    }
}

impl RaftStorage<Types> for Flushed {
    type LogReader = Arc<MemStore>;
    type SnapshotBuilder = Arc<MemStore>;

    async fn save_vote(&mut self, vote: &Vote<u64>) -> Stored<()> {
        let _ = self.1.sync_data();
        self.0.save_vote(vote).await
    }
    async fn append_to_log<I>(&mut self, entries: I) -> Stored<()>
    where
        I: IntoIterator<Item = Entry<Types>> + OptionalSend,
    {
        let (entries, file) = (Vec::from_iter(entries), self.1.clone());
        let _ = writeln!(&*file, "{}", serde_json::to_string(&entries).unwrap());
        let _ = tokio::task::spawn_blocking(move || file.sync_data()).await;
        self.0.append_to_log(entries).await
    }
    delegate::delegate! { to self.0 {
        async fn read_vote(&mut self) -> Stored<Option<Vote<u64>>>;
        async fn get_log_state(&mut self) -> Stored<LogState<Types>>;
        async fn get_log_reader(&mut self) -> Arc<MemStore>;
        async fn delete_conflict_logs_since(&mut self, from: LogId<u64>) -> Stored<()>;
        async fn purge_logs_upto(&mut self, to: LogId<u64>) -> Stored<()>;
        async fn last_applied_state(
            &mut self,
        ) -> Stored<(Option<LogId<u64>>, StoredMembership<u64, ()>)>;
        async fn apply_to_state_machine(
            &mut self, entries: &[Entry<Types>],
        ) -> Stored<Vec<ClientResponse>>;
        async fn get_snapshot_builder(&mut self) -> Arc<MemStore>;
        async fn begin_receiving_snapshot(&mut self) -> Stored<Box<Cursor<Vec<u8>>>>;
        async fn install_snapshot(
            &mut self, of: &SnapshotMeta<u64, ()>, snapshot: Box<Cursor<Vec<u8>>>,
        ) -> Stored<()>;
        async fn get_current_snapshot(&mut self) -> Stored<Option<Snapshot<Types>>>;
    } }
}

/// What asks another server, the addresses of all, and the number of the other.
struct Peer(reqwest::Client, Vec<String>, usize);

impl RaftNetworkFactory<Types> for Peer {
    type Network = Peer;

    async fn new_client(&mut self, number: u64, _: &()) -> Peer {
        Peer(self.0.clone(), self.1.clone(), number as usize)
    }
}

impl Peer {
    async fn ask<A: DeserializeOwned>(&self, path: &str, it: impl Serialize) -> Sent<A> {
        let asked = self.0.post(format!("http://{}/{path}", self.1[self.2])).json(&it).send();
        let said = async { asked.await?.json().await }.await;
        said.map_err(|error: reqwest::Error| Unreachable::new(&error).into())
    }
}

impl RaftNetwork<Types> for Peer {
    async fn append_entries(
        &mut self, it: AppendEntriesRequest<Types>, _: RPCOption,
    ) -> Sent<AppendEntriesResponse<u64>> {
        self.ask("append", it).await
    }
    async fn vote(&mut self, it: VoteRequest<u64>, _: RPCOption) -> Sent<VoteResponse<u64>> {
        self.ask("vote", it).await
    }
    async fn install_snapshot(
        &mut self, _: InstallSnapshotRequest<Types>, _: RPCOption,
    ) -> Sent<InstallSnapshotResponse<u64>, InstallSnapshotError> {
        unimplemented!() // none is ever made
    }
}

/// Answer a client.
async fn operation(
    State((raft, store)): State<(Raft<Types>, Arc<MemStore>)>,
    Path((name, serial)): Path<(String, u64)>,
) -> Result<String, String> {
    let request = ClientRequest { client: "c".into(), serial, status: serial.to_string() };
    match name.as_str() {
        "write" => drop(raft.client_write(request).await.map_err(|it| it.to_string())?),
        "verified" => drop(raft.ensure_linearizable().await.map_err(|it| it.to_string())?),
        "leader" => return raft.current_leader().await.map(|it| it.to_string()).ok_or("none".into()),
        "stale" => (),
        _ => return Err("no such operation".into()),
    }
    Ok(store.get_state_machine().await.client_status.remove("c").unwrap_or("0".into()))
}

#[tokio::main(worker_threads = 2)]
async fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let number: usize = words[1].parse().unwrap();
    let hosts: Vec<_> = words[2].split(',').map(|host| format!("{host}:7000")).collect();
    let config = Config {
        heartbeat_interval: 1000, // the limit of a message too
        election_timeout_min: 3000,
        election_timeout_max: 6000,
        snapshot_policy: SnapshotPolicy::Never,
        ..Default::default()
    };
    let (memory, file) = (MemStore::new_async().await, File::create(format!("{}/log", words[3]))?);
    let (log, state) = Adaptor::new(Flushed(memory.clone(), file.into()));
    let peer = Peer(reqwest::Client::new(), hosts.clone(), number);
    let raft = Raft::new(number as u64, config.into(), peer, log, state).await.unwrap();
    if number == 0 {
        let members: std::collections::BTreeSet<u64> = (0..hosts.len() as u64).collect();
        raft.initialize(members).await.unwrap();
    }
    let (appends, votes) = (raft.clone(), raft.clone());
    let routes = Router::new()
        .route("/append", post(|Json(it)| async move { Json(appends.append_entries(it).await.unwrap()) }))
        .route("/vote", post(|Json(it)| async move { Json(votes.vote(it).await.unwrap()) }))
        .route("/{operation}/{number}", post(operation))
        .with_state((raft, memory));
    let wire = tokio::net::TcpListener::bind(&hosts[number]).await?;
    axum::serve(wire.tap_io(|wire| wire.set_nodelay(true).unwrap()), routes).await
}

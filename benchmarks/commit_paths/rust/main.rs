// A server around openraft, so that a client can measure it from elsewhere.
//
//	rust openraft NUMBER ADDRESS,ADDRESS,… VOTERS FOLDER
//
// It listens at port 7000 of its address for lines "OPERATION KEY NUMBER", answered by "ok VALUE" or
// "error …", and at port 7001 for lines of JSON from the others. An entry is on the disk once the file
// is flushed, which the store tells by the callback, so that openraft may do other things meanwhile.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{Debug, Display};
use std::fs::File;
use std::io::{Cursor, Write};
use std::ops::RangeBounds;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use openraft::error::{RPCError, RaftError, Unreachable};
use openraft::network::{RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use openraft::storage::{LogFlushed, LogState, RaftLogStorage, RaftStateMachine, Snapshot};
use openraft::{
    BasicNode, Config, Entry, EntryPayload, LogId, OptionalSend, RaftLogReader,
    RaftSnapshotBuilder, SnapshotMeta, SnapshotPolicy, StorageError, StoredMembership, Vote,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

openraft::declare_raft_types!(Types: D = String, R = u64);
type Raft = openraft::Raft<Types>;
type Stored<T> = Result<T, StorageError<u64>>;
type Sent<T, E = openraft::error::Infallible> = Result<T, RPCError<u64, BasicNode, RaftError<u64, E>>>;

// --- the log, in memory and in a file --------------------------------------------------------------

#[derive(Clone)]
struct Log {
    entries: Arc<Mutex<BTreeMap<u64, Entry<Types>>>>,
    vote: Option<Vote<u64>>,
    file: Arc<File>,
}

impl RaftLogReader<Types> for Log {
    async fn try_get_log_entries<R>(&mut self, range: R) -> Stored<Vec<Entry<Types>>>
    where
        R: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        Ok(self.entries.lock().unwrap().range(range).map(|(_, entry)| entry.clone()).collect())
    }
}

impl RaftLogStorage<Types> for Log {
    type LogReader = Log;

    async fn get_log_state(&mut self) -> Stored<LogState<Types>> {
        let last = self.entries.lock().unwrap().values().last().map(|entry| entry.log_id);
        Ok(LogState { last_purged_log_id: None, last_log_id: last })
    }
    async fn get_log_reader(&mut self) -> Log {
        self.clone()
    }
    async fn save_vote(&mut self, vote: &Vote<u64>) -> Stored<()> {
        self.vote = Some(*vote);
        let _ = self.file.sync_data();
        Ok(())
    }
    async fn read_vote(&mut self) -> Stored<Option<Vote<u64>>> {
        Ok(self.vote)
    }
    async fn append<I>(&mut self, entries: I, flushed: LogFlushed<Types>) -> Stored<()>
    where
        I: IntoIterator<Item = Entry<Types>> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        for entry in entries {
            let _ = writeln!(&*self.file, "{}", serde_json::to_string(&entry).unwrap());
            self.entries.lock().unwrap().insert(entry.log_id.index, entry);
        }
        let file = self.file.clone();
        tokio::task::spawn_blocking(move || flushed.log_io_completed(file.sync_data()));
        Ok(())
    }
    async fn truncate(&mut self, from: LogId<u64>) -> Stored<()> {
        self.entries.lock().unwrap().split_off(&from.index);
        Ok(())
    }
    async fn purge(&mut self, _: LogId<u64>) -> Stored<()> {
        Ok(())
    }
}

// --- the state: a number for each key; no snapshot is ever made ------------------------------------

#[derive(Clone, Default)]
struct State {
    value: Arc<Mutex<HashMap<String, u64>>>,
    applied: Option<LogId<u64>>,
    members: StoredMembership<u64, BasicNode>,
}

impl RaftSnapshotBuilder<Types> for State {
    async fn build_snapshot(&mut self) -> Stored<Snapshot<Types>> {
        unimplemented!()
    }
}

impl RaftStateMachine<Types> for State {
    type SnapshotBuilder = State;

    async fn applied_state(
        &mut self,
    ) -> Stored<(Option<LogId<u64>>, StoredMembership<u64, BasicNode>)> {
        Ok((self.applied, self.members.clone()))
    }
    async fn apply<I>(&mut self, entries: I) -> Stored<Vec<u64>>
    where
        I: IntoIterator<Item = Entry<Types>> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut answers = Vec::new();
        for entry in entries {
            self.applied = Some(entry.log_id);
            match entry.payload {
                EntryPayload::Normal(line) => {
                    let (key, number) = line.split_once(' ').unwrap();
                    self.value.lock().unwrap().insert(key.into(), number.parse().unwrap());
                }
                EntryPayload::Membership(members) => {
                    self.members = StoredMembership::new(Some(entry.log_id), members)
                }
                EntryPayload::Blank => {}
            }
            answers.push(0);
        }
        Ok(answers)
    }
    async fn get_snapshot_builder(&mut self) -> State {
        self.clone()
    }
    async fn begin_receiving_snapshot(&mut self) -> Stored<Box<Cursor<Vec<u8>>>> {
        unimplemented!()
    }
    async fn install_snapshot(
        &mut self,
        _: &SnapshotMeta<u64, BasicNode>,
        _: Box<Cursor<Vec<u8>>>,
    ) -> Stored<()> {
        unimplemented!()
    }
    async fn get_current_snapshot(&mut self) -> Stored<Option<Snapshot<Types>>> {
        Ok(None)
    }
}

// --- messages: a connection carries one at a time, and is used again -------------------------------

#[derive(Serialize, Deserialize)]
enum Message {
    Append(AppendEntriesRequest<Types>),
    Vote(VoteRequest<u64>),
}

type Idle = Arc<Mutex<Vec<BufReader<TcpStream>>>>;

#[derive(Clone, Default)]
struct Network(Arc<Mutex<HashMap<String, Idle>>>);

struct Peer(String, Idle);

impl Peer {
    async fn ask<T: DeserializeOwned>(&self, message: Message) -> std::io::Result<T> {
        let idle = self.1.lock().unwrap().pop();
        let mut wire = match idle {
            Some(wire) => wire,
            None => BufReader::new(TcpStream::connect(&self.0).await?),
        };
        wire.get_ref().set_nodelay(true)?;
        wire.write_all(format!("{}\n", serde_json::to_string(&message)?).as_bytes()).await?;
        let mut line = String::new();
        wire.read_line(&mut line).await?;
        self.1.lock().unwrap().push(wire);
        Ok(serde_json::from_str(&line)?)
    }
}

impl RaftNetworkFactory<Types> for Network {
    type Network = Peer;

    async fn new_client(&mut self, _: u64, node: &BasicNode) -> Peer {
        Peer(node.addr.clone(), self.0.lock().unwrap().entry(node.addr.clone()).or_default().clone())
    }
}

fn lost<E: std::error::Error>(error: std::io::Error) -> RPCError<u64, BasicNode, RaftError<u64, E>> {
    RPCError::Unreachable(Unreachable::new(&error))
}

impl RaftNetwork<Types> for Peer {
    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<Types>,
        _: RPCOption,
    ) -> Sent<AppendEntriesResponse<u64>> {
        self.ask(Message::Append(request)).await.map_err(lost)
    }
    async fn vote(&mut self, request: VoteRequest<u64>, _: RPCOption) -> Sent<VoteResponse<u64>> {
        self.ask(Message::Vote(request)).await.map_err(lost)
    }
    async fn install_snapshot(
        &mut self,
        _: InstallSnapshotRequest<Types>,
        _: RPCOption,
    ) -> Sent<InstallSnapshotResponse<u64>, openraft::error::InstallSnapshotError> {
        unimplemented!()
    }
}

/// Answer lines, each connection by itself.
async fn serve<F, A>(address: String, answer: F) -> std::io::Result<()>
where
    F: Fn(String) -> A + Clone + Send + 'static,
    A: std::future::Future<Output = String> + Send,
{
    let listener = TcpListener::bind(address).await?;
    loop {
        let (wire, _) = listener.accept().await?;
        wire.set_nodelay(true)?;
        let answer = answer.clone();
        tokio::spawn(async move {
            let mut wire = BufReader::new(wire);
            let mut line = String::new();
            while wire.read_line(&mut line).await.is_ok_and(|length| length > 0) {
                let said = answer(std::mem::take(&mut line)).await + "\n";
                if wire.write_all(said.as_bytes()).await.is_err() {
                    break;
                }
            }
        });
    }
}

fn said<T, E: Display>(value: T, error: Option<E>) -> String
where
    T: Display,
{
    error.map_or(format!("ok {value}"), |error| format!("error {error}").replace('\n', " "))
}

#[tokio::main(worker_threads = 2)]
async fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let (number, voters): (u64, usize) = (words[2].parse().unwrap(), words[4].parse().unwrap());
    let hosts: Vec<String> = words[3].split(',').map(String::from).collect();
    let config = Config {
        heartbeat_interval: 1000, // the limit of a message too
        election_timeout_min: 3000,
        election_timeout_max: 6000,
        snapshot_policy: SnapshotPolicy::Never,
        ..Default::default()
    };
    let log = Log {
        entries: Default::default(),
        vote: None,
        file: Arc::new(File::create(format!("{}/log", words[5]))?),
    };
    let state = State::default();
    let value = state.value.clone();
    let raft = Raft::new(number, Arc::new(config), Network::default(), log, state).await.unwrap();
    let inner = raft.clone();
    tokio::spawn(serve(format!("{}:7001", hosts[number as usize]), move |line| {
        let raft = inner.clone();
        async move {
            match serde_json::from_str(&line).unwrap() {
                Message::Append(it) => serde_json::to_string(&raft.append_entries(it).await.unwrap()),
                Message::Vote(it) => serde_json::to_string(&raft.vote(it).await.unwrap()),
            }
            .unwrap()
        }
    }));
    if number == 0 {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let members: BTreeMap<u64, BasicNode> = (0..voters)
            .map(|i| (i as u64, BasicNode::new(format!("{}:7001", hosts[i]))))
            .collect();
        raft.initialize(members).await.unwrap();
    }
    serve(format!("{}:7000", hosts[number as usize]), move |line| {
        let (raft, value) = (raft.clone(), value.clone());
        async move {
            let words: Vec<&str> = line.split_whitespace().collect();
            let get = || value.lock().unwrap().get(words[1]).copied().unwrap_or(0);
            match words[0] {
                "write" => {
                    let done = raft.client_write(format!("{} {}", words[1], words[2])).await;
                    said(0, done.err())
                }
                "verified" => {
                    let done = raft.ensure_linearizable().await;
                    said(get(), done.err())
                }
                "stale" => said(get(), None::<String>),
                "leader" => match raft.current_leader().await {
                    Some(leader) => said(leader, None::<String>),
                    None => said(0, Some("no leader")),
                },
                _ => said(0, Some("no such operation")),
            }
        }
    })
    .await
}

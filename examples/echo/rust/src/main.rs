//! The Echo service on tonic: at 127.0.0.1:PORT.

use std::{env, error::Error, time::Duration};

use cpu_time::ThreadTime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, transport::Server};

use pb::echo_server::{Echo, EchoServer};
use pb::{EchoReply, EchoRequest};

mod pb {
    tonic::include_proto!("echo.v1");
    pub const DESCRIPTION: &[u8] = tonic::include_file_descriptor_set!("echo");
}

struct Service;

#[tonic::async_trait]
impl Echo for Service {
    async fn say(&self, request: Request<EchoRequest>) -> Result<Response<EchoReply>, Status> {
        let EchoRequest { text, cpu_ms, .. } = request.into_inner();
        if cpu_ms > 0 {
            // What computes has a thread of its own: others go on with other calls.
            let computed = spawn_blocking(move || compute(cpu_ms)).await;
            computed.map_err(|e| Status::internal(e.to_string()))?;
        }
        Ok(Response::new(EchoReply { text, number: 1 }))
    }

    type RepeatStream = ReceiverStream<Result<EchoReply, Status>>;

    async fn repeat(&self, request: Request<EchoRequest>) -> Result<Response<Self::RepeatStream>, Status> {
        let EchoRequest { text, cpu_ms, count } = request.into_inner();
        let (answers, stream) = mpsc::channel(16); // waits for a caller who is slow
        spawn_blocking(move || {
            for number in 1..=count.min(10_000) {
                compute(cpu_ms);
                let text = text.clone();
                if answers.blocking_send(Ok(EchoReply { text, number })).is_err() {
                    return; // the caller has left
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}

/// Has this thread compute for so long: on a busy machine it takes longer.
fn compute(millis: u32) {
    let began = ThreadTime::now();
    let long = Duration::from_millis(millis.min(1000).into());
    while began.elapsed() < long {}
}

async fn serve() -> Result<(), Box<dyn Error>> {
    let port = env::var("PORT").unwrap_or_else(|_| "50051".into());
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (health, checks) = tonic_health::server::health_reporter();
    health.set_serving::<EchoServer<Service>>().await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(pb::DESCRIPTION)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()?;
    Server::builder()
        .add_service(EchoServer::new(Service))
        .add_service(checks)
        .add_service(reflection)
        // Calls that run are served.
        .serve_with_shutdown(format!("127.0.0.1:{port}").parse()?, async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        })
        .await?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(serve())
}

//! A QUIC client and server (quinn) with TLS over real sockets: how long a handshake and a download take.
//!
//! ```text
//! quic-lab server                  # on port 4433, with a certificate that is made at its start
//! quic-lab client HOST BYTES       # downloads so much, once, and prints a line
//! ```
//! The client trusts any certificate: this is a measurement in a lab.

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Endpoint, ServerConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

const PORT: u16 = 4433;
/// The longest download.
const MOST: u64 = 1 << 32;
/// Bytes that are written at once.
const PIECE: usize = 64 << 10;
/// A client that hears nothing for so long gives up.
const PATIENCE: Duration = Duration::from_secs(60);

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["server"] => serve().await,
        ["client", host, bytes] => download(host, bytes.parse()?).await,
        _ => Err("usage: quic-lab server | client HOST BYTES".into()),
    }
}

async fn serve() -> Outcome<()> {
    let own = rcgen::generate_simple_self_signed(vec!["server".to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(own.key_pair.serialize_der());
    let tls = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key.into())?;
    let config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    let endpoint = Endpoint::server(config, SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT)))?;
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            if let Err(error) = answer(incoming).await {
                eprintln!("quic-lab server: {error}");
            }
        });
    }
    Ok(())
}

/// Sends as many bytes as each stream asks for.
async fn answer(incoming: quinn::Incoming) -> Outcome<()> {
    let connection = incoming.await?;
    loop {
        let (mut to, mut from) = match connection.accept_bi().await {
            Ok(streams) => streams,
            // The client has what it wanted.
            Err(quinn::ConnectionError::ApplicationClosed(_)) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let mut asked = [0; 8];
        from.read_exact(&mut asked).await?;
        let mut left = u64::from_be_bytes(asked).min(MOST);
        let piece = vec![0; PIECE];
        while left > 0 {
            let now = left.min(PIECE as u64) as usize;
            to.write_all(&piece[..now]).await?;
            left -= now as u64;
        }
        to.finish()?;
    }
}

async fn download(host: &str, bytes: u64) -> Outcome<()> {
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone))
        .with_no_client_auth();
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    let mut transport = quinn::TransportConfig::default();
    transport.max_idle_timeout(Some(PATIENCE.try_into()?));
    config.transport_config(Arc::new(transport));
    let mut endpoint = Endpoint::client(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?;
    endpoint.set_default_client_config(config);
    let to = (host, PORT).to_socket_addrs()?.find(SocketAddr::is_ipv4).ok_or("the host has no IPv4 address")?;

    let began = Instant::now();
    let connection = endpoint.connect(to, "server")?.await?;
    let handshake = began.elapsed();
    let (mut ask, mut from) = connection.open_bi().await?;
    ask.write_all(&bytes.to_be_bytes()).await?;
    ask.finish()?;
    let (mut got, mut piece) = (0, vec![0; PIECE]);
    while let Some(read) = from.read(&mut piece).await? {
        got += read as u64;
    }
    let (took, path) = (began.elapsed() - handshake, connection.stats().path);
    if got != bytes {
        return Err(format!("{got} bytes came, not {bytes}").into());
    }
    println!(
        "handshake {} ms, {got} bytes in {:.2} s, {:.2} Mbit/s, round trip {} ms at the end",
        handshake.as_millis(),
        took.as_secs_f64(),
        got as f64 * 8.0 / took.as_secs_f64() / 1e6,
        path.rtt.as_millis()
    );
    connection.close(0_u32.into(), b"done");
    endpoint.wait_idle().await;
    Ok(())
}

/// Takes every certificate.
#[derive(Debug)]
struct Anyone;

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

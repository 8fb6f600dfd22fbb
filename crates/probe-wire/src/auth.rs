//! The token and its proofs: each side proves that it knows the token by a keyed hash (HMAC-SHA-256, RFC
//! 2104) of both nonces. The token is never sent.
//!
//! Both derive a key for the session from the token and the draws, and from it one for each use
//! ([`SessionKey`]): every message after the handshake, every UDP packet and every sample of a flow carries a
//! keyed hash of itself and its number. Nothing is encrypted.
//!
//! A false server sees a client's proof and can try tokens against it offline. That is hopeless against a
//! token that a machine drew, and only against such: [`Token::new`] refuses what has too few, too uniform or
//! too regular characters, and [`Token::drawn`] makes a good one. A password-authenticated key exchange would
//! allow short tokens; the libraries for it are not audited, and nobody has to remember a token.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::guess;

/// Bytes that each side draws.
pub const NONCE_LEN: usize = 32;
/// Bytes of a proof.
pub const PROOF: usize = 32;

/// Bytes of the keyed hash of a message; of a UDP packet, which has little space (as SRTP's short one, RFC
/// 3711).
pub const TAG: usize = 16;
pub(crate) const PACKET_TAG: usize = 4;

/// The proof that a side knows a token.
pub type Proof = [u8; PROOF];

/// The side that proves something; a proof of one side is invalid for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The side that connects.
    Client,
    /// The side that is connected to.
    Server,
}

/// The secret of both ends.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Vec<u8>);

impl Token {
    /// The fewest characters of a token.
    pub const LEAST: usize = 24;
    /// The fewest bits that it could hold, by how many and how different characters it has, repeats and
    /// sequences left out.
    pub const LEAST_BITS: usize = 96;

    /// From what a file or a variable holds, spaces around it left out; `None`: it is too short, too uniform,
    /// or too regular to be one.
    ///
    /// What could be a good token is taken: whether chance made it cannot be seen.
    pub fn new(text: &str) -> Option<Token> {
        let text = text.trim();
        (text.len() >= Token::LEAST && guess::bits(text) >= Token::LEAST_BITS)
            .then(|| Token(text.as_bytes().to_vec()))
    }

    /// The text of a token, from bytes that a machine drew: 256 bits as hexadecimal digits.
    pub fn drawn(bytes: &[u8; NONCE_LEN]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The token of a server that requires none.
    pub fn open() -> Token {
        Token(Vec::new())
    }

    /// Proves that a side knows it.
    pub fn prove(&self, side: Role, client: &[u8; NONCE_LEN], server: &[u8; NONCE_LEN]) -> Proof {
        self.prove_with(side, client, server, &[])
    }

    /// A proof that also covers `said`, data that the side sends beside it.
    pub fn prove_with(
        &self,
        side: Role,
        client: &[u8; NONCE_LEN],
        server: &[u8; NONCE_LEN],
        bytes: &[u8],
    ) -> Proof {
        self.keyed(side, client, server, bytes).finalize().into_bytes().into()
    }

    /// Is that a side's proof? It takes as long whatever is wrong with it.
    pub fn proves(
        &self,
        proof: &Proof,
        side: Role,
        client: &[u8; NONCE_LEN],
        server: &[u8; NONCE_LEN],
    ) -> bool {
        self.proves_with(proof, side, client, server, &[])
    }

    /// Verifies a proof that also covers `said`, data that the side sends beside it.
    pub fn proves_with(
        &self,
        proof: &Proof,
        side: Role,
        client: &[u8; NONCE_LEN],
        server: &[u8; NONCE_LEN],
        bytes: &[u8],
    ) -> bool {
        self.keyed(side, client, server, bytes).verify_slice(proof).is_ok()
    }

    /// The key of the session that these draws begin.
    pub fn session_key(&self, client: &[u8; NONCE_LEN], server: &[u8; NONCE_LEN]) -> SessionKey {
        SessionKey(hashed(&self.0, &[b"tidegate 2 session", client, server]).finalize().into_bytes().into())
    }

    fn keyed(
        &self,
        side: Role,
        client: &[u8; NONCE_LEN],
        server: &[u8; NONCE_LEN],
        bytes: &[u8],
    ) -> Hmac<Sha256> {
        hashed(&self.0, &[b"tidegate 2 proof ", side.name(), client, server, bytes])
    }
}

impl Role {
    fn name(self) -> &'static [u8] {
        match self {
            Role::Client => b"client",
            Role::Server => b"server",
        }
    }

    /// The other side.
    pub fn other(self) -> Role {
        match self {
            Role::Client => Role::Server,
            Role::Server => Role::Client,
        }
    }
}

/// The secret of the two ends of one session.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionKey([u8; 32]);

impl SessionKey {
    /// The seal of a side's messages over TCP.
    pub fn seal(&self, side: Role) -> Seal {
        Seal { key: self.derived(b"messages", side.name()), number: 0 }
    }

    /// Seals the samples of a flow, by its key.
    pub fn samples(&self) -> Seal {
        Seal { key: self.derived(b"samples", b""), number: 0 }
    }

    /// For the UDP packets that a side sends.
    pub fn packets(&self, side: Role) -> SessionKey {
        self.derived(b"packets", side.name())
    }

    /// For a flow's own connection, by its number in the session.
    pub fn flow(&self, number: u32) -> SessionKey {
        self.derived(b"flow", &number.to_be_bytes())
    }

    /// The front of a keyed hash.
    pub(crate) fn tag<const OCTETS: usize>(&self, parts: &[&[u8]]) -> [u8; OCTETS] {
        let whole: [u8; 32] = hashed(&self.0, parts).finalize().into_bytes().into();
        core::array::from_fn(|at| whole[at])
    }

    /// Is that its front? It takes as long whatever is wrong with it.
    pub(crate) fn tags(&self, tag: &[u8], parts: &[&[u8]]) -> bool {
        hashed(&self.0, parts).verify_truncated_left(tag).is_ok()
    }

    fn derived(&self, what: &[u8], of: &[u8]) -> SessionKey {
        SessionKey(hashed(&self.0, &[b"tidegate 2 key ", what, b" ", of]).finalize().into_bytes().into())
    }
}

impl fmt::Debug for SessionKey {
    /// It stays secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionKey(…)")
    }
}

/// Seals messages in sequence, so that none can be changed, left out, repeated or reordered.
#[derive(Debug)]
pub struct Seal {
    key: SessionKey,
    number: u64,
}

impl Seal {
    /// The seal of the next.
    pub fn tag(&mut self, bytes: &[u8]) -> [u8; TAG] {
        self.number += 1;
        self.key.tag(&[&self.number.to_be_bytes(), bytes])
    }

    /// Is that the seal of the next?
    pub fn verifies(&mut self, bytes: &[u8], tag: &[u8; TAG]) -> bool {
        self.number += 1;
        self.key.tags(tag, &[&self.number.to_be_bytes(), bytes])
    }
}

fn hashed(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    // A key of HMAC may have any length, so this cannot fail.
    let mut keyed = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    parts.iter().for_each(|part| keyed.update(part));
    keyed
}

impl fmt::Debug for Token {
    /// It stays secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_knows_the_token_proves_it_and_only_for_himself() {
        let (right, wrong) = (
            Token::new("A good secret, that is 24 or more long\n").unwrap(),
            Token::new("Another secret, that is 24 or more long").unwrap(),
        );
        let (client, server) = ([1; NONCE_LEN], [2; NONCE_LEN]);
        let proof = right.prove(Role::Client, &client, &server);
        assert!(right.proves(&proof, Role::Client, &client, &server));
        assert!(!right.proves(&proof, Role::Server, &client, &server));
        assert!(!right.proves(&proof, Role::Client, &client, &[3; NONCE_LEN]));
        assert!(!wrong.proves(&proof, Role::Client, &client, &server));
        // Data sent beside a proof is covered by it.
        let bytes = right.prove_with(Role::Server, &client, &server, b"limits");
        assert!(right.proves_with(&bytes, Role::Server, &client, &server, b"limits"));
        assert!(!right.proves_with(&bytes, Role::Server, &client, &server, b"others"));
    }

    #[test]
    fn what_can_be_guessed_is_no_token() {
        for weak in [
            "  short ",
            "",
            "password",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "abababababababababababababababababab",
            "123456789012345678901234567890",
            "1234567890123456789012345678901234567890123456789012345678901234",
            "abcdefghijklmnopqrstuvwxyz0123456789",
            "qwertyuiopasdfghjklzxcvbnm1234567890",
            "a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7",
            "kW3nXcZ0kW3nXcZ0kW3nXcZ0kW3nXcZ0kW3nXcZ0",
            "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        ] {
            assert_eq!(Token::new(weak), None, "{weak}");
        }
        // As many as a linear congruential generator draws in a moment: what chance makes is taken.
        let mut state = 1_u64;
        for _ in 0..1000 {
            let drawn = Token::drawn(&core::array::from_fn(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            }));
            assert_eq!((drawn.len(), Token::new(&drawn).is_some()), (64, true), "{drawn}");
        }
        assert!(Token::new("fEJW3nXcZ0tq8pYkLr1vB2uMs9").is_some(), "as base64 has it");
    }

    #[test]
    fn seals_are_valid_for_one_session_one_side_and_one_place() {
        let token = Token::new("A good secret, that is 24 or more long").unwrap();
        let key = token.session_key(&[1; NONCE_LEN], &[2; NONCE_LEN]);
        let other = token.session_key(&[1; NONCE_LEN], &[3; NONCE_LEN]);
        let (first, second) = {
            let mut seal = key.seal(Role::Client);
            (seal.tag(b"one"), seal.tag(b"one"))
        };
        assert_ne!(first, second);
        let verifies = |key: &SessionKey, side, bytes: &[u8], tag| key.seal(side).verifies(bytes, tag);
        assert!(verifies(&key, Role::Client, b"one", &first));
        assert!(!verifies(&key, Role::Client, b"one", &second), "not the first");
        assert!(
            !verifies(&key, Role::Client, b"two", &first) && !verifies(&key, Role::Server, b"one", &first)
        );
        assert!(
            !verifies(&other, Role::Client, b"one", &first)
                && !verifies(&key.flow(1), Role::Client, b"one", &first)
        );
    }

    #[test]
    fn proofs_are_hmac_sha_256() {
        // RFC 4231, case 2, by the same function.
        let mut keyed = Hmac::<Sha256>::new_from_slice(b"Jefe").unwrap();
        keyed.update(b"what do ya want for nothing?");
        let found: [u8; 32] = keyed.finalize().into_bytes().into();
        assert_eq!(found[..8], [0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e]);
    }
}

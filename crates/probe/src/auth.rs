//! Who knows the token: each side proves it by a keyed hash (HMAC-SHA-256, RFC 2104) of what both drew. The token never travels.

use alloc::vec::Vec;
use core::fmt;

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Octets that each side draws.
pub const DRAW: usize = 32;
/// Octets of a proof.
pub const PROOF: usize = 32;

/// That somebody knows a token.
pub type Proof = [u8; PROOF];

/// Who proves something; a proof of one side is none of the other's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Who connects.
    Client,
    /// Who is connected to.
    Server,
}

/// What both ends know and nobody else.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Vec<u8>);

impl Token {
    /// The fewest octets of a token.
    pub const LEAST: usize = 8;

    /// From what a file or a variable holds, spaces around it left out; `None`: it is too short to be one.
    pub fn new(text: &str) -> Option<Token> {
        let text = text.trim();
        (text.len() >= Token::LEAST).then(|| Token(text.as_bytes().to_vec()))
    }

    /// What stands for a token where none is asked for.
    pub fn open() -> Token {
        Token(Vec::new())
    }

    /// Proves that a side knows it.
    pub fn prove(&self, side: Side, client: &[u8; DRAW], server: &[u8; DRAW]) -> Proof {
        self.keyed(side, client, server).finalize().into_bytes().into()
    }

    /// Is that a side's proof? It takes as long whatever is wrong with it.
    pub fn proves(&self, proof: &Proof, side: Side, client: &[u8; DRAW], server: &[u8; DRAW]) -> bool {
        self.keyed(side, client, server).verify_slice(proof).is_ok()
    }

    fn keyed(&self, side: Side, client: &[u8; DRAW], server: &[u8; DRAW]) -> Hmac<Sha256> {
        let whose: &[u8] = match side {
            Side::Client => b"tidegate 1 client",
            Side::Server => b"tidegate 1 server",
        };
        // A key of HMAC may have any length, so this cannot fail.
        let mut keyed = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        for part in [whose, client, server] {
            keyed.update(part);
        }
        keyed
    }
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
        let (right, wrong) = (Token::new("a good secret\n").unwrap(), Token::new("a bad secret").unwrap());
        let (client, server) = ([1; DRAW], [2; DRAW]);
        let proof = right.prove(Side::Client, &client, &server);
        assert!(right.proves(&proof, Side::Client, &client, &server));
        assert!(!right.proves(&proof, Side::Server, &client, &server));
        assert!(!right.proves(&proof, Side::Client, &client, &[3; DRAW]));
        assert!(!wrong.proves(&proof, Side::Client, &client, &server));
        assert_eq!(Token::new("  short "), None);
    }

    #[test]
    fn proofs_are_hmac_sha_256() {
        // RFC 4231, case 2, by the same door.
        let mut keyed = Hmac::<Sha256>::new_from_slice(b"Jefe").unwrap();
        keyed.update(b"what do ya want for nothing?");
        let found: [u8; 32] = keyed.finalize().into_bytes().into();
        assert_eq!(found[..8], [0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e]);
    }
}

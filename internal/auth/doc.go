// Package auth holds JSON Web Tokens against keys, and turns what they say into who a
// caller is and what it may do.
//
// Start from Verifier. What it keeps to:
//
//  1. Which algorithms may have signed a token is decided by the key alone, never by the
//     token: HMAC for a secret, RSA, ECDSA or Ed25519 for a public key, by its kind.
//     "none" is no algorithm, and keys that a token brings along are not looked at.
//  2. A token says whose it is (sub) and when it ends (exp). A wrong nbf, iat, iss or aud
//     makes it count for nothing. Clocks may differ by 30 seconds.
//  3. What a token does not allow is not allowed, unless the defaults do.
//
// Source: RFC 7519 (tokens), RFC 7515 (signatures), RFC 7517 (keys), RFC 8725 (attacks).
package auth

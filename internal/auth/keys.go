package auth

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"
)

const (
	// leastSecretBytes is what HS256 needs. Source: RFC 7518, section 3.2.
	leastSecretBytes = 32

	// leastRSABits is what all RSA algorithms need. Source: RFC 7518, section 3.3.
	leastRSABits = 2048

	// mostKeys bounds a file of keys: a token without an id of its key is held against
	// all that have none.
	mostKeys = 16

	// mostKeyBytes bounds what has keys, from wherever it comes.
	mostKeyBytes = 1 << 20
)

// key is one with which tokens may be signed.
type key struct {
	id         string // a token that names one is held against it; "" is for all tokens
	algorithms []jose.SignatureAlgorithm
	value      any // []byte, *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey
}

// keySet is keys that are known.
type keySet []key

// find returns the keys of an id, and those that have none.
func (s keySet) find(id string) (found keySet) {
	for _, k := range s {
		if k.id == id || k.id == "" {
			found = append(found, k)
		}
	}
	return found
}

// parseSecret makes a key of a secret that whoever signs tokens has, too.
//
// Shape: at least 32 bytes of text; line breaks at its end are not part of it.
// Errors: one line without the secret. What looks like a key of another kind is refused:
// a public key as a secret lets everybody sign who knows it.
func parseSecret(content []byte) (keySet, error) {
	secret := bytes.TrimRight(content, "\r\n")
	switch {
	case isKey(secret):
		return nil, errors.New("it is a key, not a secret")
	case !utf8.Valid(secret) || bytes.ContainsFunc(secret, unicode.IsControl):
		return nil, errors.New("a secret is one line of text")
	case len(secret) < leastSecretBytes:
		return nil, fmt.Errorf("the secret has %d bytes, it needs %d: openssl rand -hex 32 prints one", len(secret), leastSecretBytes)
	}
	k := key{value: slices.Clone(secret), algorithms: []jose.SignatureAlgorithm{jose.HS256}}
	if len(secret) >= 48 {
		k.algorithms = append(k.algorithms, jose.HS384)
	}
	if len(secret) >= 64 {
		k.algorithms = append(k.algorithms, jose.HS512)
	}
	return keySet{k}, nil
}

// isKey knows keys that are no secrets, in the forms in which they are kept: PEM, what
// PEM has between its lines, the same in bytes, JSON, and that of SSH.
func isKey(text []byte) bool {
	if bytes.Contains(text, []byte("-----BEGIN")) || bytes.HasPrefix(text, []byte("{")) || bytes.HasPrefix(text, []byte("ssh-")) {
		return true
	}
	der, err := base64.StdEncoding.DecodeString(string(text))
	return err == nil && isDER(der) || isDER(text)
}

func isDER(der []byte) bool {
	_, pkix := x509.ParsePKIXPublicKey(der)
	_, pkcs1 := x509.ParsePKCS1PublicKey(der)
	_, certificate := x509.ParseCertificate(der)
	return pkix == nil || pkcs1 == nil || certificate == nil
}

// parsePublic makes keys of a file: PEM, with one or more public keys or certificates, or
// a JWK set.
func parsePublic(content []byte) (set keySet, left leftOut, err error) {
	content = bytes.TrimSpace(content)
	if bytes.HasPrefix(content, []byte("{")) {
		return parseJWKS(content)
	}
	set, err = parsePEM(content)
	return set, nil, err
}

func parsePEM(content []byte) (set keySet, err error) {
	for {
		block, rest := pem.Decode(content)
		if block == nil {
			break
		}
		public, err := publicOf(block)
		if err != nil {
			return nil, err
		}
		k, err := newKey("", public)
		if err != nil {
			return nil, err
		}
		set, content = append(set, k), rest
	}
	switch {
	case len(set) == 0:
		return nil, errors.New("it is neither PEM nor a JWK set")
	case len(bytes.TrimSpace(content)) > 0:
		return nil, errors.New("trailing data after the last PEM block")
	case len(set) > mostKeys:
		return nil, fmt.Errorf("it has %d keys, at most %d are possible", len(set), mostKeys)
	}
	return set, nil
}

// publicOf reads a block of PEM.
func publicOf(block *pem.Block) (public any, err error) {
	switch block.Type {
	case "PUBLIC KEY":
		public, err = x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		public, err = x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		var certificate *x509.Certificate
		if certificate, err = x509.ParseCertificate(block.Bytes); err == nil {
			public = certificate.PublicKey
		}
	case "PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY":
		return nil, errors.New("it is a private key, which belongs to whoever signs tokens: the public one is needed here")
	default:
		return nil, fmt.Errorf("a PEM block is %q: PUBLIC KEY, RSA PUBLIC KEY and CERTIFICATE are possible", block.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("the PEM block %s cannot be read: %w", block.Type, err)
	}
	return public, nil
}

// parseJWKS takes the public keys for signatures; others are for others. Those that are
// for signatures and too weak, or of no use here, are left out, and named.
func parseJWKS(content []byte) (set keySet, left leftOut, err error) {
	var all struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(content, &all); err != nil {
		return nil, nil, fmt.Errorf("it is no JWK set: %w", err)
	}
	var weak error
	for _, raw := range all.Keys {
		var jwk jose.JSONWebKey
		if err := jwk.UnmarshalJSON(raw); err != nil || jwk.Use != "" && jwk.Use != "sig" {
			continue // of a kind that is for something else
		}
		if _, isSecret := jwk.Key.([]byte); isSecret {
			continue
		}
		if !jwk.IsPublic() {
			return nil, nil, errors.New("it has a private key, which belongs to whoever signs tokens: the public ones are needed here")
		}
		k, err := newKey(jwk.KeyID, jwk.Key)
		if err != nil { // it is left out: the others are as good as they were
			weak = err
			left.add(jwk.KeyID, err)
			continue
		}
		if k.narrow(jwk.Algorithm) {
			set = append(set, k)
		}
	}
	switch {
	case len(set) == 0 && weak != nil:
		return nil, nil, weak
	case len(set) == 0:
		return nil, nil, errors.New("it has no public key for signatures")
	case len(set.find("")) > mostKeys:
		return nil, nil, fmt.Errorf("it has %d keys without a kid, at most %d are possible", len(set.find("")), mostKeys)
	}
	return set, left, nil
}

// narrow leaves the one algorithm that a key is for, if it says so, and reports whether
// any is left.
func (k *key) narrow(algorithm string) bool {
	if algorithm == "" {
		return true
	}
	if !slices.Contains(k.algorithms, jose.SignatureAlgorithm(algorithm)) {
		return false
	}
	k.algorithms = []jose.SignatureAlgorithm{jose.SignatureAlgorithm(algorithm)}
	return true
}

// newKey pins the algorithms of a public key.
func newKey(id string, public any) (key, error) {
	k := key{id: id, value: public}
	switch public := public.(type) {
	case *rsa.PublicKey:
		if bits := public.N.BitLen(); bits < leastRSABits {
			return key{}, fmt.Errorf("an RSA key has %d bits, it needs %d", bits, leastRSABits)
		}
		k.algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512}
	case ed25519.PublicKey:
		k.algorithms = []jose.SignatureAlgorithm{jose.EdDSA}
	case *ecdsa.PublicKey:
		algorithm, ok := map[string]jose.SignatureAlgorithm{"P-256": jose.ES256, "P-384": jose.ES384, "P-521": jose.ES512}[public.Params().Name]
		if !ok {
			return key{}, fmt.Errorf("the curve %s is for no algorithm of tokens", public.Params().Name)
		}
		k.algorithms = []jose.SignatureAlgorithm{algorithm}
	default:
		return key{}, fmt.Errorf("a key is a %T: RSA, ECDSA and Ed25519 are possible", public)
	}
	return k, nil
}

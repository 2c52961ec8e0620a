package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/cabrank/cabrank/internal/testkit"
)

// secret is what tests sign with, and the server knows.
var secret = strings.Repeat("0123456789abcdef", 4)

// keyring is keys of each kind, made once: RSA takes its time.
type keyring struct {
	rsa   *rsa.PrivateKey
	ec    *ecdsa.PrivateKey
	ec384 *ecdsa.PrivateKey
	ed    ed25519.PrivateKey
}

var keys = sync.OnceValue(func() (k keyring) {
	k.rsa, _ = rsa.GenerateKey(rand.Reader, 2048)
	k.ec, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	k.ec384, _ = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	_, k.ed, _ = ed25519.GenerateKey(rand.Reader)
	return k
})

// claims is what a good token says, changed as a test wants it; nil takes one out.
func claims(changes map[string]any) map[string]any {
	all := map[string]any{"sub": "u1", "exp": time.Now().Add(time.Hour).Unix()}
	for name, value := range changes {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	return all
}

// sign makes a token with the library, as others do.
func sign(t testing.TB, algorithm jose.SignatureAlgorithm, by any, id string, payload any) string {
	t.Helper()
	options := (&jose.SignerOptions{}).WithType("JWT")
	if id != "" {
		options = options.WithHeader("kid", id)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: by}, options)
	testkit.Must(t, err)
	text, _ := json.Marshal(payload)
	signed, err := signer.Sign(text)
	testkit.Must(t, err)
	token, err := signed.CompactSerialize()
	testkit.Must(t, err)
	return token
}

// forge makes a token by hand: whatever header and payload, signed by HMAC.
func forge(by []byte, header, payload string) string {
	text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(payload))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac(by, text))
}

func mac(by []byte, text string) []byte {
	h := hmac.New(sha256.New, by)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func public(t testing.TB, k crypto.Signer) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(k.Public())
	testkit.Must(t, err)
	return armour("PUBLIC KEY", der)
}

func armour(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// jwks is a set with the public keys of k by their names.
func jwks(t testing.TB, all ...jose.JSONWebKey) []byte {
	t.Helper()
	text, err := json.Marshal(jose.JSONWebKeySet{Keys: all})
	testkit.Must(t, err)
	return text
}

func verifier(t testing.TB, options Options) *Verifier {
	t.Helper()
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	v, err := New(options)
	testkit.Must(t, err)
	return v
}

package auth

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"log/slog"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/cabrank/cabrank/internal/testkit"
)

// certificate is one of k, signed by itself.
func certificate(t testing.TB, k *ecdsa.PrivateKey) []byte {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "t"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	testkit.Must(t, err)
	return armour("CERTIFICATE", der)
}

// Keys that are no secrets, too short, or of the wrong half are named in one line.
func TestWrongKeys(t *testing.T) {
	k := keys()
	small, _ := rsa.GenerateKey(rand.Reader, 1024)
	p224, _ := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	private, _ := x509.MarshalPKCS8PrivateKey(k.rsa)
	der, _ := x509.MarshalPKIXPublicKey(&k.rsa.PublicKey)
	secretOf := func(text string) Options { return Options{Secret: []byte(text)} }
	keysOf := func(content []byte) Options { return Options{Keys: content} }
	for name, tc := range map[string]struct {
		options Options
		want    string
	}{
		"a short secret":           {secretOf("0123456789abcdef\n"), "the secret has 16 bytes, it needs 32"},
		"no secret":                {secretOf("\n"), "the secret has 0 bytes"},
		"a secret in two lines":    {secretOf(secret + "\n" + secret), "a secret is one line of text"},
		"a secret of bytes":        {secretOf(strings.Repeat("\xff", 40)), "a secret is one line of text"},
		"PEM for a secret":         {secretOf(string(public(t, k.rsa))), "it is a key, not a secret"},
		"PEM without its lines":    {secretOf(base64.StdEncoding.EncodeToString(der)), "it is a key, not a secret"},
		"DER for a secret":         {secretOf(string(der)), "it is a key, not a secret"},
		"SSH for a secret":         {secretOf("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"), "it is a key, not a secret"},
		"JSON for a secret":        {secretOf(string(jwks(t, jose.JSONWebKey{Key: k.ec.Public()}))), "it is a key, not a secret"},
		"a secret for a key":       {keysOf([]byte(secret)), "it is neither PEM nor a JWK set"},
		"nothing":                  {keysOf(nil), "it is neither PEM nor a JWK set"},
		"a private key":            {keysOf(armour("PRIVATE KEY", private)), "it is a private key"},
		"a private key, old style": {keysOf(armour("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(k.rsa))), "it is a private key"},
		"parameters":               {keysOf(armour("EC PARAMETERS", nil)), `a PEM block is "EC PARAMETERS"`},
		"PEM of nothing":           {keysOf(armour("PUBLIC KEY", []byte("x"))), "the PEM block PUBLIC KEY cannot be read"},
		"half a key behind a key":  {keysOf(append(public(t, k.rsa), public(t, k.ec)[:60]...)), "trailing data after the last PEM block"},
		"a small key":              {keysOf(public(t, small)), "an RSA key has 1024 bits, it needs 2048"},
		"a curve":                  {keysOf(public(t, p224)), "the curve P-224 is for no algorithm of tokens"},
		"many keys":                {keysOf([]byte(strings.Repeat(string(public(t, k.ec)), 17))), "it has 17 keys, at most 16 are possible"},
		"JSON that is none":        {keysOf([]byte("{")), "it is no JWK set"},
		"a set of nothing":         {keysOf([]byte(`{"keys":[]}`)), "it has no public key for signatures"},
		"a single key":             {keysOf([]byte(`{"kty":"EC"}`)), "it has no public key for signatures"},
		"a secret in a set":        {keysOf([]byte(`{"keys":[{"kty":"oct","k":"AAAA","kid":"a"}]}`)), "it has no public key for signatures"},
		"a set of private keys":    {keysOf(jwks(t, jose.JSONWebKey{Key: k.ec})), "it has a private key"},
		"a set of small keys":      {keysOf(jwks(t, jose.JSONWebKey{Key: small.Public()})), "an RSA key has 1024 bits"},
		"a set for encryption":     {keysOf(jwks(t, jose.JSONWebKey{Key: k.rsa.Public(), Use: "enc"}, jose.JSONWebKey{Key: k.rsa.Public(), Algorithm: "RSA-OAEP"})), "it has no public key for signatures"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(tc.options)
			testkit.Want(t, err != nil && strings.HasPrefix(err.Error(), tc.want) && !strings.Contains(err.Error(), "\n"),
				"got %v, want %s", err, tc.want)
		})
	}
}

// Several keys stand beside each other, so that they can be changed one after the other.
// A key with an id is for tokens that name it.
func TestSeveralKeys(t *testing.T) {
	k := keys()
	both := append(public(t, k.rsa), certificate(t, k.ec)...)
	set := jwks(t,
		jose.JSONWebKey{Key: k.rsa.Public(), KeyID: "r", Algorithm: "RS256", Use: "sig"}, jose.JSONWebKey{Key: k.ed.Public(), KeyID: "e"},
		jose.JSONWebKey{Key: k.ec.Public()}, jose.JSONWebKey{Key: []byte(secret), KeyID: "s"},
	)
	small, _ := rsa.GenerateKey(rand.Reader, 1024)
	weak := jwks(t, jose.JSONWebKey{Key: small.Public(), KeyID: "w"}, jose.JSONWebKey{Key: k.ec.Public(), KeyID: "e"})
	for name, tc := range map[string]struct {
		keys      []byte
		algorithm jose.SignatureAlgorithm
		by        any
		id        string
		err       error
	}{
		"PEM":                      {both, jose.RS512, k.rsa, "", nil},
		"a certificate":            {both, jose.ES256, k.ec, "whatever", nil},
		"the old kind of PEM":      {armour("RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&k.rsa.PublicKey)), jose.RS256, k.rsa, "", nil},
		"none of them":             {both, jose.ES384, k.ec384, "", errAlgorithm},
		"by its id":                {set, jose.RS256, k.rsa, "r", nil},
		"another algorithm":        {set, jose.PS256, k.rsa, "r", errKey},
		"by another id":            {set, jose.RS256, k.rsa, "e", errKey},
		"without its id":           {set, jose.RS256, k.rsa, "", errKey},
		"by an unknown id":         {set, jose.RS256, k.rsa, "x", errKey},
		"a key without an id":      {set, jose.ES256, k.ec, "", nil},
		"a key without an id, too": {set, jose.ES256, k.ec, "x", nil},
		"a key that is too short":  {weak, jose.RS256, small, "w", errKey},
		"one beside it":            {weak, jose.ES256, k.ec, "e", nil},
		"a secret in the set":      {set, jose.HS256, []byte(secret), "s", errAlgorithm},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := verifier(t, Options{Keys: tc.keys}).Verify(sign(t, tc.algorithm, tc.by, tc.id, claims(nil)))
			if (err == nil) != (tc.err == nil) || tc.err != nil && err.Error() != tc.err.Error() && err.Error() != errAlgorithm.Error() {
				t.Errorf("got %v, want %v", err, tc.err)
			}
		})
	}
}

// A key that is left out is named, and why; the key itself is not. That is bounded.
func TestKeysLeftOutAreTold(t *testing.T) {
	k := keys()
	small, _ := rsa.GenerateKey(rand.Reader, 1024)
	all := []jose.JSONWebKey{{Key: k.ec.Public(), KeyID: "e"}}
	for range 100 {
		all = append(all, jose.JSONWebKey{Key: small.Public(), KeyID: strings.Repeat("w", 200)})
	}
	log := &bytes.Buffer{}
	verifier(t, Options{Keys: jwks(t, all...), Log: slog.New(slog.NewTextHandler(log, nil))})
	said := log.String()
	testkit.Want(t, strings.Count(said, "an RSA key has 1024 bits, it needs 2048") == mostLeftOut && len(said) <= 4096,
		"%d bytes: %s", len(said), said)
	testkit.Want(t, !strings.Contains(said, small.N.String()[:20]) && !strings.Contains(said, "AQAB"), "the key is told: %s", said)
}

// FuzzKeys: what is taken as keys is strong enough, and a secret is no public key.
func FuzzKeys(f *testing.F) {
	k := keys()
	for _, seed := range [][]byte{
		public(f, k.ec), public(f, k.ed), certificate(f, k.ec), []byte(secret), []byte("{\"keys\":[{}]}"),
		jwks(f, jose.JSONWebKey{Key: k.ec.Public(), KeyID: "a", Use: "sig"}),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		set, _, err := parsePublic(content)
		testkit.Want(t, (err == nil) == (len(set) > 0), "%d keys, %v", len(set), err)
		for _, one := range set {
			_, isBytes := one.value.([]byte)
			testkit.Want(t, !isBytes && len(one.algorithms) != 0, "%T by %v", one.value, one.algorithms)
		}
		if shared, secretErr := parseSecret(content); secretErr == nil && (err == nil || len(shared[0].value.([]byte)) < leastSecretBytes) {
			t.Errorf("%q is a secret", content)
		}
	})
}

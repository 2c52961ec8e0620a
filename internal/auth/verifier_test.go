package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Every algorithm of a key counts with that key, and with no other one.
func TestAlgorithmsArePinned(t *testing.T) {
	k := keys()
	kinds := map[string]struct {
		options    Options
		by         any
		algorithms []jose.SignatureAlgorithm
	}{
		"secret":  {Options{Secret: []byte(secret)}, []byte(secret), []jose.SignatureAlgorithm{jose.HS256, jose.HS384, jose.HS512}},
		"rsa":     {Options{Keys: public(t, k.rsa)}, k.rsa, []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512}},
		"p-256":   {Options{Keys: public(t, k.ec)}, k.ec, []jose.SignatureAlgorithm{jose.ES256}},
		"p-384":   {Options{Keys: public(t, k.ec384)}, k.ec384, []jose.SignatureAlgorithm{jose.ES384}},
		"ed25519": {Options{Keys: public(t, k.ed)}, k.ed, []jose.SignatureAlgorithm{jose.EdDSA}},
	}
	for name, kind := range kinds {
		v := verifier(t, kind.options)
		for other, signer := range kinds {
			for _, algorithm := range signer.algorithms {
				identity, err := v.Verify(sign(t, algorithm, signer.by, "", claims(nil)))
				switch {
				case name == other && (err != nil || identity.User != "u1"):
					t.Errorf("%s by %s: %+v, %v", name, algorithm, identity, err)
				case name != other && !errors.Is(err, errAlgorithm):
					t.Errorf("%s takes a token of %s by %s: %v", name, other, algorithm, err)
				}
			}
		}
	}
}

// forgery is a token that counts for nothing by some keys.
type forgery struct {
	options Options
	token   string
	err     error
}

// forgeries are what is known to have broken others.
func forgeries(t testing.TB) map[string]forgery {
	t.Helper()
	k := keys()
	good, _ := json.Marshal(claims(nil))
	pemRSA, pemEC := public(t, k.rsa), public(t, k.ec)
	mine, _ := rsa.GenerateKey(rand.Reader, 2048)
	none := func(alg string) string {
		return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"`+alg+`"}`)) + "." + base64.RawURLEncoding.EncodeToString(good) + "."
	}
	ofRSA := sign(t, jose.RS256, k.rsa, "", claims(nil))
	head, _, _ := strings.Cut(ofRSA, ".")
	another := base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"admin","exp":9999999999}`))
	signature := ofRSA[strings.LastIndex(ofRSA, ".")+1:]
	embedded, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: mine}, &jose.SignerOptions{EmbedJWK: true})
	testkit.Must(t, err)
	bringsKey, _ := embedded.Sign(good)
	withKey, _ := bringsKey.CompactSerialize()
	rsaKeys, ecKeys, shared := Options{Keys: pemRSA}, Options{Keys: pemEC}, Options{Secret: []byte(secret)}
	zeros := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256"}`)) + "." + base64.RawURLEncoding.EncodeToString(good) + "." +
		base64.RawURLEncoding.EncodeToString(make([]byte, 64))
	return map[string]forgery{
		"none":                               {rsaKeys, none("none"), errAlgorithm},
		"None":                               {shared, none("None"), errAlgorithm},
		"no algorithm":                       {shared, none(""), errAlgorithm},
		"HMAC by the public key":             {rsaKeys, forge(pemRSA, `{"alg":"HS256"}`, string(good)), errAlgorithm},
		"HMAC by the public key, trimmed":    {ecKeys, forge([]byte(strings.TrimSpace(string(pemEC))), `{"alg":"HS256"}`, string(good)), errAlgorithm},
		"RSA where there is a secret":        {shared, ofRSA, errAlgorithm},
		"another payload":                    {rsaKeys, head + "." + another + "." + signature, errKey},
		"no signature":                       {rsaKeys, ofRSA[:len(ofRSA)-len(signature)], errKey},
		"a short signature":                  {rsaKeys, ofRSA[:len(ofRSA)-4], errKey},
		"a key that the token brings along":  {rsaKeys, withKey, errKey},
		"a key at an address":                {rsaKeys, sign(t, jose.RS256, mine, "https://evil.example/keys", claims(nil)), errKey},
		"a signature of zeros":               {ecKeys, zeros, errKey},
		"another secret":                     {shared, forge([]byte(strings.Repeat("x", 64)), `{"alg":"HS256"}`, string(good)), errKey},
		"no secret":                          {shared, forge(nil, `{"alg":"HS256"}`, string(good)), errKey},
		"an extension that must be known":    {shared, forge([]byte(secret), `{"alg":"HS256","crit":["b"],"b":1}`, string(good)), errKey},
		"a header with two algorithms":       {shared, forge([]byte(secret), `{"alg":"none","alg":"HS256"}`, string(good)), errForm},
		"five parts, which is encrypted":     {rsaKeys, "a.b.c.d.e", errForm},
		"JSON":                               {shared, `{"payload":"e30","signatures":[{"protected":"e30","signature":""}]}`, errForm},
		"blanks":                             {shared, " " + forge([]byte(secret), `{"alg":"HS256"}`, string(good)), errForm},
		"a long one":                         {shared, strings.Repeat("x", mostTokenBytes+1), errLength},
		"nothing that is a token":            {shared, "secret", errForm},
		"padding":                            {shared, forge([]byte(secret), `{"alg":"HS256"}`, string(good)) + "=", errForm},
		"a payload that is none":             {shared, forge([]byte(secret), `{"alg":"HS256"}`, "x"), errClaims},
		"a number for a user":                {shared, forge([]byte(secret), `{"alg":"HS256"}`, `{"sub":1,"exp":9999999999}`), errClaims},
		"an end that comes twice":            {shared, forge([]byte(secret), `{"alg":"HS256"}`, `{"sub":"a","exp":1,"exp":9999999999}`), errClaims},
		"an end in capitals":                 {shared, forge([]byte(secret), `{"alg":"HS256"}`, `{"sub":"a","EXP":9999999999}`), errEnd},
		"an end that is a text":              {shared, forge([]byte(secret), `{"alg":"HS256"}`, `{"sub":"a","exp":"9999999999"}`), errClaims},
		"an end beyond all time":             {shared, forge([]byte(secret), `{"alg":"HS256"}`, `{"sub":"a","exp":1e300}`), errClaims},
		"rules that are no list":             {shared, forge([]byte(secret), `{"alg":"HS256"}`, `{"sub":"a","exp":9999999999,"call":"*"}`), errClaims},
		"rules that are no text":             {shared, forge([]byte(secret), `{"alg":"HS256"}`, `{"sub":"a","exp":9999999999,"channels":[1]}`), errClaims},
		"a user that breaks a line of a log": {shared, forge([]byte(secret), `{"alg":"HS256"}`, `{"sub":"a\nb","exp":9999999999}`), errUser},
	}
}

func TestForgedTokens(t *testing.T) {
	for name, tc := range forgeries(t) {
		t.Run(name, func(t *testing.T) {
			identity, err := verifier(t, tc.options).Verify(tc.token)
			testkit.Want(t, identity == nil && errors.Is(err, tc.err), "%+v, %v, want %v", identity, err, tc.err)
		})
	}
}

// Claims of each kind, at the edges of what clocks may differ.
func TestClaims(t *testing.T) {
	ago := func(d time.Duration) int64 { return time.Now().Add(-d).Unix() }
	shop := Options{Secret: []byte(secret), Audience: "sockets", Issuer: "https://shop.example"}
	inShop := map[string]any{"aud": "sockets", "iss": "https://shop.example"}
	for name, tc := range map[string]struct {
		options Options
		claims  map[string]any
		err     error
	}{
		"no end":                  {claims: map[string]any{"exp": nil}, err: errEnd},
		"expired":                 {claims: map[string]any{"exp": ago(32 * time.Second)}, err: errExpired},
		"expired by clocks":       {claims: map[string]any{"exp": ago(25 * time.Second)}},
		"fractions":               {claims: map[string]any{"exp": float64(ago(-time.Minute)) + 0.5}},
		"not yet":                 {claims: map[string]any{"nbf": ago(-35 * time.Second)}, err: errEarly},
		"not yet by clocks":       {claims: map[string]any{"nbf": ago(-25 * time.Second)}},
		"made in the future":      {claims: map[string]any{"iat": ago(-35 * time.Second)}, err: errEarly},
		"made long ago":           {claims: map[string]any{"iat": ago(time.Hour)}},
		"nobody":                  {claims: map[string]any{"sub": nil}, err: errUser},
		"an empty user":           {claims: map[string]any{"sub": ""}, err: errUser},
		"a long user":             {claims: map[string]any{"sub": strings.Repeat("u", 257)}, err: errUser},
		"for somebody else":       {claims: map[string]any{"aud": "billing"}, err: errAudience},
		"for us":                  {options: shop, claims: inShop},
		"for several":             {options: shop, claims: map[string]any{"aud": []string{"a", "sockets"}, "iss": "https://shop.example"}},
		"for nobody":              {options: shop, claims: map[string]any{"iss": "https://shop.example"}, err: errAudience},
		"for another":             {options: shop, claims: map[string]any{"aud": "billing", "iss": "https://shop.example"}, err: errAudience},
		"of another":              {options: shop, claims: map[string]any{"aud": "sockets", "iss": "https://evil.example"}, err: errIssuer},
		"of nobody":               {options: shop, claims: map[string]any{"aud": "sockets"}, err: errIssuer},
		"an audience of no kind":  {options: shop, claims: map[string]any{"aud": 1}, err: errClaims},
		"claims that nobody asks": {claims: map[string]any{"email": "a@b", "roles": []int{1}}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.options.Secret == nil {
				tc.options.Secret = []byte(secret)
			}
			text, _ := json.Marshal(claims(tc.claims))
			identity, err := verifier(t, tc.options).Verify(forge([]byte(secret), `{"alg":"HS256"}`, string(text)))
			testkit.Want(t, errors.Is(err, tc.err) && (err == nil) == (identity != nil), "%+v, %v, want %v", identity, err, tc.err)
		})
	}
}

// What a token says is what its socket may do; what it leaves out the defaults say.
func TestRulesOfAToken(t *testing.T) {
	defaults := Rules{Call: []string{"shop.*"}, Subscribe: []string{"news", "user.{user}.*"}, Channels: []string{"user.{user}.mail"}}
	for name, tc := range map[string]struct {
		claims   map[string]any
		defaults Rules
		want     Identity
	}{
		"nothing": {},
		"all": {
			claims: map[string]any{"call": []string{"a"}, "publish": []string{"b"}, "subscribe": []string{"c"}, "channels": []string{"d"}},
			want:   Identity{Call: []string{"a"}, Publish: []string{"b"}, Subscribe: []string{"c"}, Channels: []string{"d"}},
		},
		"defaults": {
			defaults: defaults,
			want:     Identity{Call: []string{"shop.*"}, Subscribe: []string{"news", "user.u1.*"}, Channels: []string{"user.u1.mail"}},
		},
		"own ones come first": {
			claims: map[string]any{"call": []string{}, "subscribe": []string{"{user}"}}, defaults: defaults,
			want: Identity{Call: []string{}, Subscribe: []string{"{user}"}, Channels: []string{"user.u1.mail"}},
		},
		"null is none": {
			claims: map[string]any{"call": json.RawMessage("null")}, defaults: Rules{Call: []string{"a"}},
			want: Identity{Call: []string{"a"}},
		},
		"a user that is a glob": {
			claims: map[string]any{"sub": `*?[\`}, defaults: defaults,
			want: Identity{User: `*?[\`, Call: []string{"shop.*"}, Subscribe: []string{"news", `user.\*\?\[\\.*`}, Channels: []string{`user.*?[\.mail`}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			token := sign(t, jose.HS256, []byte(secret), "", claims(tc.claims))
			got, err := verifier(t, Options{Secret: []byte(secret), Defaults: tc.defaults}).Verify(token)
			testkit.Must(t, err)
			if tc.want.User == "" {
				tc.want.User = "u1"
			}
			tc.want.Expires = got.Expires
			testkit.Want(t, fmt.Sprintf("%+v", *got) == fmt.Sprintf("%+v", tc.want), "got  %+v\nwant %+v", *got, tc.want)
			left := time.Until(got.Expires)
			testkit.Want(t, left >= time.Hour && left <= time.Hour+leeway, "it ends in %v", left)
		})
	}
}

// Without a token nobody comes in, unless that is wanted, and then with the defaults that
// are for all.
func TestAnonymous(t *testing.T) {
	options := Options{Secret: []byte(secret), Defaults: Rules{Subscribe: []string{"news", "user.{user}"}, Channels: []string{"{user}"}}}
	if identity, err := verifier(t, options).Verify(""); identity != nil || !errors.Is(err, errNone) {
		t.Errorf("%+v, %v", identity, err)
	}
	options.Optional = true
	identity, err := verifier(t, options).Verify("")
	if err != nil || identity.User != "" || !identity.Expires.IsZero() || !slices.Equal(identity.Subscribe, []string{"news"}) || len(identity.Channels)+len(identity.Call) > 0 {
		t.Errorf("%+v, %v", identity, err)
	}
	_, err = verifier(t, options).Verify("x")
	testkit.Want(t, errors.Is(err, errForm), "a wrong token is none: %v", err)
}

// Other keys hold at once; with wrong ones, those of before hold on. Whoever keeps what was
// said is told.
func TestOtherKeys(t *testing.T) {
	other := strings.Repeat("fedcba9876543210", 4)
	text, _ := json.Marshal(claims(nil))
	old, fresh := forge([]byte(secret), `{"alg":"HS256"}`, string(text)), forge([]byte(other), `{"alg":"HS256"}`, string(text))
	v := verifier(t, Options{Secret: []byte(secret)})
	epoch := v.Epoch()
	err := v.Replace(Options{Secret: []byte("short")})
	testkit.Want(t, err != nil && v.Epoch() == epoch, "a short secret: %v, epoch %d after %d", err, v.Epoch(), epoch)
	_, err = v.Verify(old)
	testkit.Want(t, err == nil, "%v", err)
	err = v.Replace(Options{Secret: []byte(other)})
	testkit.Want(t, err == nil && v.Epoch() != epoch, "another secret: %v, epoch %d", err, v.Epoch())
	_, err = v.Verify(old)
	testkit.Want(t, errors.Is(err, errKey), "by the old one: %v", err)
	_, err = v.Verify(fresh)
	testkit.Want(t, err == nil, "by the new one: %v", err)
}

// FuzzVerify holds what is accepted against the standard library alone.
func FuzzVerify(f *testing.F) {
	good, _ := json.Marshal(claims(map[string]any{"call": []string{"*"}}))
	f.Add(forge([]byte(secret), `{"alg":"HS256"}`, string(good)))
	f.Add(forge([]byte(secret), `{"alg":"HS256","kid":"a","crit":[]}`, `{"sub":"a","exp":9999999999,"aud":[]}`))
	f.Add(forge([]byte(secret), `{"alg":"none"}`, `{"sub":"a","exp":1e9,"nbf":null}`))
	f.Add("..")
	v, err := New(Options{Secret: []byte(secret)})
	testkit.Must(f, err)
	f.Fuzz(func(t *testing.T, token string) {
		identity, err := v.Verify(token)
		testkit.Need(t, (identity == nil) == (err != nil), "%+v, %v", identity, err)
		if err != nil {
			return
		}
		at := strings.LastIndex(token, ".")
		signature, err := base64.RawURLEncoding.DecodeString(token[at+1:])
		testkit.Want(t, err == nil && slices.Equal(signature, mac([]byte(secret), token[:at])), "%q is accepted", token)
		testkit.Want(t, isUser(identity.User) && time.Until(identity.Expires) >= 0, "%+v", identity)
	})
}

// FuzzClaims signs whatever it is given.
func FuzzClaims(f *testing.F) {
	f.Add(`{"sub":"a","exp":9999999999,"call":["*"],"channels":["a"]}`)
	f.Add(`{"sub":"a","exp":-1.5e3,"aud":["x",1],"iss":{}}`)
	f.Add(`[]`)
	v, err := New(Options{Secret: []byte(secret), Defaults: Rules{Call: []string{"{user}"}}})
	testkit.Must(f, err)
	f.Fuzz(func(t *testing.T, payload string) {
		identity, err := v.Verify(forge([]byte(secret), `{"alg":"HS256"}`, payload))
		if err == nil && (!isUser(identity.User) || time.Until(identity.Expires) < 0) {
			t.Errorf("%q: %+v", payload, identity)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	k := keys()
	p521, _ := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	rules := claims(map[string]any{"call": []string{"shop.*"}, "subscribe": []string{"user.u1.*", "news.*"}})
	for algorithm, by := range map[jose.SignatureAlgorithm]any{jose.HS256: []byte(secret), jose.RS256: k.rsa, jose.ES256: k.ec, jose.ES512: p521, jose.EdDSA: k.ed} {
		options := Options{Secret: []byte(secret)}
		if signer, ok := by.(crypto.Signer); ok {
			options = Options{Keys: public(b, signer)}
		}
		v, token := verifier(b, options), sign(b, algorithm, by, "", rules)
		b.Run(string(algorithm), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := v.Verify(token)
				testkit.Must(b, err)
			}
		})
	}
}

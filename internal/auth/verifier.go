package auth

import (
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json" // which tells keys apart by their case, and refuses those that come twice
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	// leeway is how much clocks may differ.
	leeway = 30 * time.Second

	// mostUserBytes bounds who a client is: it goes into headers of calls.
	mostUserBytes = 256

	// mostTokenBytes bounds a token.
	mostTokenBytes = 8 << 10
)

// What a client is told whose token counts for nothing.
var (
	errNone      = errors.New("no token")
	errLength    = errors.New("the token is longer than 8 KiB")
	errForm      = errors.New("what came is no signed token")
	errAlgorithm = errors.New("the token is signed in a way that no key here is for")
	errKey       = errors.New("the token is signed with a key that is not known here")
	errExpired   = errors.New("the token has expired")
	errEarly     = errors.New("the token does not count yet")
	errEnd       = errors.New("the token does not say when it ends (exp)")
	errUser      = errors.New("the token does not say whose it is (sub), in 1 to 256 bytes of text")
	errIssuer    = errors.New("the token is of another issuer (iss)")
	errAudience  = errors.New("the token is for another audience (aud)")
	errClaims    = errors.New("a claim of the token is not of its kind")
)

// Options of a Verifier. One of Secret, Keys and URL is required.
type Options struct {
	// Secret is shared with whoever signs tokens: at least 32 bytes of text.
	Secret []byte
	// Keys is PEM with public keys or certificates, or a JWK set.
	Keys []byte
	// URL is where a JWK set is: https, or http of this host.
	URL string

	// Audience has to be one of those of a token. Empty: the token must have none.
	Audience string
	// Issuer has to be that of a token. Empty: any.
	Issuer string
	// Defaults hold where a token has no such claim. "{user}" in them is its user.
	Defaults Rules
	// Optional lets in who has no token, with what the defaults allow.
	Optional bool

	// Log is told if keys cannot be fetched, and which of them are left out.
	Log *slog.Logger
}

// Verifier holds tokens against keys. It is a socket.Auth.
//
// Concurrency: every method may be called from anywhere.
type Verifier struct {
	now   atomic.Pointer[rule]
	epoch atomic.Uint64
	turns chan struct{} // has an element for each signature that is looked at: callers can have that cost whatever they like
}

// rule is options with the keys that they name.
type rule struct {
	Options
	algorithms []jose.SignatureAlgorithm // of all keys
	find       func(id string) keySet
	anonymous  *Identity // nil: nobody may be
}

// New returns a verifier. It fetches the keys if they have a URL.
//
// Errors: one line that says what is wrong with the secret or the keys, without them.
func New(options Options) (*Verifier, error) {
	v := &Verifier{turns: make(chan struct{}, max(runtime.GOMAXPROCS(0)/2, 1))}
	if err := v.Replace(options); err != nil {
		return nil, err
	}
	return v, nil
}

// Replace has other options hold for tokens that come. Keys of the same URL are not
// fetched for it: they are when they are old.
//
// Errors: as New; then those of before hold on.
func (v *Verifier) Replace(options Options) error {
	r, before := &rule{Options: options}, v.now.Load()
	if options.Optional {
		r.anonymous = Rules{}.or(options.Defaults, "").identity("")
	}
	switch {
	case options.URL != "" && before != nil && before.URL == options.URL:
		r.find, r.algorithms = before.find, before.algorithms
	case options.URL != "":
		source := newRemote(options.URL, options.Log, func() { v.epoch.Add(1) })
		if err := source.open(); err != nil {
			return err
		}
		r.find, r.algorithms = source.find, publicAlgorithms()
	default:
		set, err := options.set()
		if err != nil {
			return err
		}
		r.find = set.find
		for _, k := range set {
			r.algorithms = append(r.algorithms, k.algorithms...)
		}
	}
	v.now.Store(r)
	v.epoch.Add(1)
	return nil
}

// Epoch changes when keys or rules do: what Verify has said before may be wrong now.
func (v *Verifier) Epoch() uint64 { return v.epoch.Load() }

// set makes keys of what is given.
func (o *Options) set() (keySet, error) {
	if o.Secret != nil {
		return parseSecret(o.Secret)
	}
	set, left, err := parsePublic(o.Keys)
	left.tell(o.Log, nil)
	return set, err
}

// publicAlgorithms are those that keys of any kind may have, but for secrets.
func publicAlgorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
	}
}

// Verify implements socket.Auth.
func (v *Verifier) Verify(token string) (*Identity, error) {
	r := v.now.Load()
	switch {
	case token == "" && r.anonymous == nil:
		return nil, errNone
	case token == "":
		return r.anonymous, nil
	case len(token) > mostTokenBytes:
		return nil, errLength
	}
	payload, err := v.payload(r, token)
	if err != nil {
		return nil, err
	}
	var claims struct {
		jwt.Claims
		Rules
	}
	if err := json.Unmarshal(payload, &claims.Claims); err != nil {
		return nil, errClaims
	}
	if err := r.check(&claims.Claims, time.Now()); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(payload, &claims.Rules); err != nil {
		return nil, errClaims
	}
	identity := claims.Rules.or(r.Defaults, claims.Subject).identity(claims.Subject)
	identity.Expires = claims.Expiry.Time().Add(leeway)
	return identity, nil
}

// payload returns what a token says if a key here has signed it.
func (v *Verifier) payload(r *rule, token string) ([]byte, error) {
	signed, err := jose.ParseSignedCompact(token, r.algorithms)
	if err != nil {
		if _, ok := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); ok {
			return nil, errAlgorithm
		}
		return nil, errForm
	}
	header := signed.Signatures[0].Protected
	keys := r.find(header.KeyID) // which may have to be fetched
	v.turns <- struct{}{}
	defer func() { <-v.turns }()
	for _, k := range keys {
		if !slices.Contains(k.algorithms, jose.SignatureAlgorithm(header.Algorithm)) {
			continue
		}
		if payload, err := signed.Verify(k.value); err == nil {
			return payload, nil
		}
	}
	return nil, errKey
}

// check holds the claims that every token has against the time and the options.
func (r *rule) check(c *jwt.Claims, now time.Time) error {
	switch {
	case c.Expiry == nil:
		return errEnd
	case !isUser(c.Subject):
		return errUser
	case r.Audience == "" && len(c.Audience) > 0:
		return errAudience // RFC 7519, section 4.1.3: who is not in it must refuse
	}
	expected := jwt.Expected{Issuer: r.Issuer, Time: now}
	if r.Audience != "" {
		expected.AnyAudience = jwt.Audience{r.Audience}
	}
	switch err := c.ValidateWithLeeway(expected, leeway); {
	case errors.Is(err, jwt.ErrExpired):
		return errExpired
	case errors.Is(err, jwt.ErrNotValidYet), errors.Is(err, jwt.ErrIssuedInTheFuture):
		return errEarly
	case errors.Is(err, jwt.ErrInvalidIssuer):
		return errIssuer
	case errors.Is(err, jwt.ErrInvalidAudience):
		return errAudience
	case err != nil:
		return errClaims
	}
	return nil
}

// isUser accepts text that can be in a log and in a header.
func isUser(name string) bool {
	return name != "" && len(name) <= mostUserBytes && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

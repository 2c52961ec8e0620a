package auth

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json" // which tells keys apart by their case, and refuses those that come twice
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/cabrank/cabrank/internal/socket"
)

const (
	// leeway is how much clocks may differ.
	leeway = 30 * time.Second

	// mostUserBytes bounds who a client is: it goes into headers of calls.
	mostUserBytes = 256
)

// What a client is told whose token counts for nothing.
var (
	errNone      = errors.New("no token")
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
	options    Options
	algorithms []jose.SignatureAlgorithm // of all keys
	find       func(id string) keySet
	anonymous  *socket.Identity // nil: nobody may be
}

// New returns a verifier. It fetches the keys if they have a URL.
//
// Errors: one line that says what is wrong with the secret or the keys, without them.
func New(options Options) (*Verifier, error) {
	v := &Verifier{options: options}
	if options.Optional {
		v.anonymous = Rules{}.or(options.Defaults, "").identity("")
	}
	if options.URL != "" {
		source := newRemote(options.URL, options.Log)
		if err := source.open(); err != nil {
			return nil, err
		}
		v.find, v.algorithms = source.find, publicAlgorithms()
		return v, nil
	}
	set, err := options.set()
	if err != nil {
		return nil, err
	}
	v.find = set.find
	for _, k := range set {
		v.algorithms = append(v.algorithms, k.algorithms...)
	}
	return v, nil
}

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
func (v *Verifier) Verify(token string) (*socket.Identity, error) {
	if token == "" {
		if v.anonymous == nil {
			return nil, errNone
		}
		return v.anonymous, nil
	}
	payload, err := v.payload(token)
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
	if err := v.check(&claims.Claims, time.Now()); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(payload, &claims.Rules); err != nil {
		return nil, errClaims
	}
	identity := claims.Rules.or(v.options.Defaults, claims.Subject).identity(claims.Subject)
	identity.Expires = claims.Expiry.Time().Add(leeway)
	return identity, nil
}

// payload returns what a token says if a key here has signed it.
func (v *Verifier) payload(token string) ([]byte, error) {
	signed, err := jose.ParseSignedCompact(token, v.algorithms)
	if err != nil {
		if _, ok := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); ok {
			return nil, errAlgorithm
		}
		return nil, errForm
	}
	header := signed.Signatures[0].Protected
	for _, k := range v.find(header.KeyID) {
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
func (v *Verifier) check(c *jwt.Claims, now time.Time) error {
	switch {
	case c.Expiry == nil:
		return errEnd
	case !isUser(c.Subject):
		return errUser
	case v.options.Audience == "" && len(c.Audience) > 0:
		return errAudience // RFC 7519, section 4.1.3: who is not in it must refuse
	}
	expected := jwt.Expected{Issuer: v.options.Issuer, Time: now}
	if v.options.Audience != "" {
		expected.AnyAudience = jwt.Audience{v.options.Audience}
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

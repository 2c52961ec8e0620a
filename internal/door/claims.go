package door

import "strings"

// Fields by which workers are told who makes a call. Only doors say it: whatever of these
// names comes from a network is taken out.
const (
	UserField   = "x-cabrank-user"   // by a token
	SocketField = "x-cabrank-socket" // the id of a socket
	ClientField = "x-cabrank-client" // by a certificate
)

// IsClaim reports whether a field has one of these names, in any case.
func IsClaim(name string) bool {
	return strings.EqualFold(name, UserField) || strings.EqualFold(name, SocketField) || strings.EqualFold(name, ClientField)
}

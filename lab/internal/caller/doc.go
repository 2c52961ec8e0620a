// Package caller makes gRPC calls with grpc-go, which is what users run, for the loads
// of package traffic.
//
// New returns a Client for one method of one target. Its Strategy says how calls
// share connections: all on one, on a pool, each on a new one, or spread by grpc-go's
// own round robin over the addresses of a name. Calls of all four kinds send the bytes
// that they are given; answers are counted and not decoded.
//
// It uses the settings that grpc-go has by default, but for two: it knows no HTTP
// proxy, for a load through one would measure that; and it dials by itself, to count
// connections.
package caller

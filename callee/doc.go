// Package callee answers calls that come over a Redis: those of the sockets of
// `cabrank socket serve --redis`, and of juggler.0's servers.
//
// Start from New, Handle and Callee.Run:
//
//	c := callee.New(callee.Options{Redis: "localhost:6379"})
//	callee.Handle(c, "greet", func(ctx context.Context, name string) (string, error) {
//		return "Hello " + name, nil
//	})
//	err := c.Run(ctx) // until ctx ends
//
// What a function can rely on:
//
//  1. Its context ends when its call does: in the time that the call had left when it was
//     taken. A call whose time was over is not given to it.
//  2. A call is taken when a worker is free, so that none waits in a callee while another
//     callee is idle. No URI waits for ever behind another one.
//  3. An error that it returns is the result, as {"error":{"message":"..."}} or as the
//     error's own JSON. A panic is, too, and is logged.
//  4. When the callee stops, what it has taken is finished.
//  5. When Redis is lost, the callee waits for it and goes on. A result is stored when
//     Redis is back, if its call has time left.
//
// A call runs at most once: if the process is killed, what it had is lost, and expires. With
// AtLeastOnce another callee gets it. docs/socket-redis.md explains both.
package callee

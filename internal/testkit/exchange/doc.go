// Package exchange holds what goes over a WebSocket of juggler.0, frame by frame, as
// text files that both an old server and ours are held to, and of juggler.1.
//
// Start from Cases and Run. A file of testdata is a list of cases:
//
//	== what it shows
//	server call_cap=1            options of the server, before the first socket
//	dial proto=juggler.0 -> 101  a socket; "2 dial" is the second
//	join proto=juggler.1         as dial, and its first frame, a welcome
//	> {"meta":...}               a text frame is sent; "2> ..." on the second socket
//	>bin 00ff                    a binary frame, in hexadecimal
//	< {"meta":...}               this frame comes, to the byte; in juggler.0 with a newline
//	<bin 00ff                    this binary frame comes
//	~< {"meta":...}              as <, but an old server may send it in another order
//	                             than its neighbors with ~
//	*< {"meta":...}              as ~<, for every server
//	ping TEXT                    a ping, and its pong
//	close 1000 TEXT              a close frame is sent
//	closed 1000 TEXT             the socket is closed so; 1006: without a close frame
//	quiet 300ms                  nothing comes for so long
//	break                        the broker goes away
//	old: ... / new: ...          a line for one kind of server only
//	# ...                        a remark
//
// In frames $a to $z are ids that a run draws, $uuid is any id, $number any number, $text any text in
// quotes, $bytes any in hexadecimal, $fill:N is N letters. "old:" and "new:" stand where ours repairs a fault on
// purpose; docs/juggler.md lists these.
package exchange

package h2

import "encoding/binary"

// Preface is the first output of a client. Source: RFC 9113 section 3.4.
const Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

const (
	frameHeaderLen  = 9
	defaultMaxFrame = 16384   // RFC 9113 6.5.2, SETTINGS_MAX_FRAME_SIZE
	maxMaxFrame     = 1 << 24 // exclusive bound of the same setting
	defaultWindow   = 65535   // RFC 9113 6.9.2
	maxWindow       = 1<<31 - 1
	maxStreamID     = 1<<31 - 1
)

type frameType uint8

// Frame types. Source: RFC 9113 section 6.
const (
	frameData         frameType = 0x0
	frameHeaders      frameType = 0x1
	framePriority     frameType = 0x2
	frameRSTStream    frameType = 0x3
	frameSettings     frameType = 0x4
	framePushPromise  frameType = 0x5
	framePing         frameType = 0x6
	frameGoAway       frameType = 0x7
	frameWindowUpdate frameType = 0x8
	frameContinuation frameType = 0x9
)

const (
	flagEndStream  = 0x1 // DATA, HEADERS
	flagAck        = 0x1 // SETTINGS, PING
	flagEndHeaders = 0x4 // HEADERS, CONTINUATION
	flagPadded     = 0x8 // DATA, HEADERS
	flagPriority   = 0x20
)

type settingID uint16

// Settings. Source: RFC 9113 section 6.5.2.
const (
	settingHeaderTableSize      settingID = 0x1
	settingEnablePush           settingID = 0x2
	settingMaxConcurrentStreams settingID = 0x3
	settingInitialWindowSize    settingID = 0x4
	settingMaxFrameSize         settingID = 0x5
	settingMaxHeaderListSize    settingID = 0x6
)

// frameHeader is the nine bytes at the beginning of every frame:
//
//	length (24 bits) type (8) flags (8) reserved (1) stream id (31)
//
// Source: RFC 9113 section 4.1.
type frameHeader struct {
	length uint32
	kind   frameType
	flags  uint8
	stream uint32
}

// parseFrameHeader reads b, which holds at least frameHeaderLen bytes.
func parseFrameHeader(b []byte) frameHeader {
	_ = b[frameHeaderLen-1]
	return frameHeader{
		length: uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]),
		kind:   frameType(b[3]),
		flags:  b[4],
		stream: binary.BigEndian.Uint32(b[5:]) & maxStreamID,
	}
}

func appendFrameHeader(dst []byte, length int, kind frameType, flags uint8, stream uint32) []byte {
	return append(dst,
		byte(length>>16), byte(length>>8), byte(length),
		byte(kind), flags,
		byte(stream>>24), byte(stream>>16), byte(stream>>8), byte(stream))
}

func appendSetting(dst []byte, id settingID, value uint32) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(id))
	return binary.BigEndian.AppendUint32(dst, value)
}

func appendWindowUpdate(dst []byte, stream, increment uint32) []byte {
	dst = appendFrameHeader(dst, 4, frameWindowUpdate, 0, stream)
	return binary.BigEndian.AppendUint32(dst, increment)
}

func appendRST(dst []byte, stream uint32, code ErrCode) []byte {
	dst = appendFrameHeader(dst, 4, frameRSTStream, 0, stream)
	return binary.BigEndian.AppendUint32(dst, uint32(code))
}

func appendGoAway(dst []byte, last uint32, code ErrCode, debug string) []byte {
	dst = appendFrameHeader(dst, 8+len(debug), frameGoAway, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, last)
	dst = binary.BigEndian.AppendUint32(dst, uint32(code))
	return append(dst, debug...)
}

func appendPing(dst []byte, ack bool, data [8]byte) []byte {
	var flags uint8
	if ack {
		flags = flagAck
	}
	dst = appendFrameHeader(dst, 8, framePing, flags, 0)
	return append(dst, data[:]...)
}

// stripPadding returns the payload of a HEADERS frame without its padding and
// priority fields, and the stream that it depends on, 0 if none.
//
// Errors: of the connection, if they do not fit.
// Source: RFC 9113 sections 6.2 and 4.2.
func stripPadding(h frameHeader, p []byte) (payload []byte, dependsOn uint32, err error) {
	pad := 0
	if h.flags&flagPadded != 0 {
		if len(p) < 1 {
			return nil, 0, connError(FrameSizeError, "headers_no_pad_length")
		}
		pad, p = int(p[0]), p[1:]
	}
	if h.flags&flagPriority != 0 {
		if len(p) < 5 {
			return nil, 0, connError(FrameSizeError, "headers_no_priority")
		}
		dependsOn, p = dependency(p), p[5:] // else ignored (RFC 9113 5.3.2)
	}
	if pad > len(p) {
		return nil, 0, connError(ProtocolError, "headers_padding")
	}
	return p[:len(p)-pad], dependsOn, nil
}

// dependency reads the stream number at the beginning of priority fields, without the
// exclusive flag.
func dependency(p []byte) uint32 { return binary.BigEndian.Uint32(p) & maxStreamID }

package wire

import (
	"encoding/binary"
	"hash/crc32"
)

// ReplyRoom is what stands before the body in an OP_MSG reply: header, flags and the kind byte of one section.
const ReplyRoom = HeaderSize + 4 + 1

// FinishReply completes an OP_MSG whose body document stands in buf after ReplyRoom bytes of room, which it fills in. With
// ChecksumPresent it appends the checksum. The result shares buf's memory where it fits.
func FinishReply(buf []byte, requestID, responseTo int32, flags Flags) []byte {
	length := len(buf)
	if flags&ChecksumPresent != 0 {
		length += 4
	}
	putHeader(buf, Header{Length: int32(length), RequestID: requestID, ResponseTo: responseTo, OpCode: OpMsg})
	binary.LittleEndian.PutUint32(buf[HeaderSize:], uint32(flags))
	buf[ReplyRoom-1] = 0
	if flags&ChecksumPresent != 0 {
		buf = binary.LittleEndian.AppendUint32(buf, crc32.Checksum(buf, castagnoli))
	}
	return buf
}

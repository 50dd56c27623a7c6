package im

import (
	"math/rand/v2"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bench"
)

// message makes the document of a message: msgid, from whom, for whom, what, when, and flag 0, not read yet.
func message(random *rand.Rand, id int64, o *Options, now time.Time) bson.Raw {
	at, dst := bsoncore.AppendDocumentStart(make([]byte, 0, o.Size+64))
	dst = bsoncore.AppendObjectIDElement(dst, "_id", bson.NewObjectID())
	dst = bsoncore.AppendInt64Element(dst, "msgid", id)
	dst = bsoncore.AppendInt32Element(dst, "fromuid", random.Int32N(int32(o.Users)))
	dst = bsoncore.AppendInt32Element(dst, "touid", random.Int32N(int32(o.Users)))
	dst = bsoncore.AppendDateTimeElement(dst, "timestamp", now.UnixMilli())
	dst = bsoncore.AppendInt32Element(dst, "flag", 0)
	const around = len("\x02msgcontent\x00") + 4 + 1 + 1 // type, name, length and the string's end; the document's end
	dst = bsoncore.AppendStringElement(dst, "msgcontent", bench.Text(random, o.Size-len(dst)-around))
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// unread finds what a user has not read yet. Where read messages are deleted there are no others.
func (o *Options) unread(user int32) bson.D {
	if o.Mark {
		return bson.D{{Key: "touid", Value: user}, {Key: "flag", Value: int32(0)}}
	}
	return bson.D{{Key: "touid", Value: user}}
}

// delivered finds the messages that a user was given.
func delivered(user int32, ids []bson.ObjectID) bson.D {
	return bson.D{{Key: "touid", Value: user}, {Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}}
}

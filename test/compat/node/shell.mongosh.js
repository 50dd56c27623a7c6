// mongosh URI --eval 'var phase = …, name = …, databases = …, data = …' shell.mongosh.js: the shell. README.md says what the phases are and
// what a line of results holds.

const day = (text) => ISODate(text + 'T00:00:00Z');
const shanghai = (d) => Long.fromNumber(Date.UTC(2018, 0, 31 + d, -8));

function caught(f) {
  try {
    f();
  } catch (e) {
    return e;
  }
  return { name: 'none' };
}

function figures(db) {
  const c = db.flights;
  const week = { date: { $gte: day('2001-01-15'), $lt: day('2001-01-22') } };
  const quakes = [];
  for (let d = 0; d < 8; d++) {
    quakes.push(db.quakes.countDocuments({ time: { $gte: shanghai(d), $lt: shanghai(d + 1) } }));
  }
  const busiest = c.aggregate([
    { $match: week }, { $group: { _id: '$origin', n: { $sum: 1 } } }, { $sort: { n: -1, _id: 1 } }, { $limit: 3 },
  ]).toArray();
  return {
    count: c.countDocuments({}),
    estimated: c.estimatedDocumentCount(),
    day: c.countDocuments({ date: { $gte: day('2001-01-15'), $lt: day('2001-01-16') } }),
    week: c.find(week).toArray().length,
    explained: (c.find(week).explain().queryPlanner.winningPlan.shards || []).map((s) => s.partition),
    busiest: busiest.map((g) => [g._id, g.n]),
    longest: c.find({}, { _id: 1 }).sort({ delay: -1 }).limit(3).toArray().map((f) => f._id),
    quakes,
  };
}

function own(db, name) {
  const c = db.getCollection(name);
  const docs = require('fs').readFileSync(data, 'utf8').split('\n', 300).map((line) => EJSON.parse(line));
  const r = {};
  c.drop();
  r.inserted = Object.keys(c.insertMany(docs).insertedIds).length;
  r.found = c.find().toArray().length;
  r.sum = 0;
  c.find().batchSize(7).forEach((f) => { r.sum += f._id; });
  r.index = c.createIndex({ delay: 1 });
  r.indexes = c.getIndexes().map((i) => i.name);
  const byId = c.updateOne({ _id: 5 }, { $inc: { delay: 1000 } });
  r.byId = [byId.matchedCount, byId.modifiedCount];
  r.many = c.updateMany({ origin: 'ORD' }, { $set: { seen: true } }).modifiedCount;
  const sixth = c.findOne({ _id: 6 });
  r.replaced = c.replaceOne({ _id: 6 }, { date: sixth.date, origin: sixth.origin, delay: 2000 }).modifiedCount;
  const after = c.findOneAndUpdate({ delay: { $gte: 1000 } }, { $set: { top: true } }, { sort: { delay: -1 }, returnDocument: 'after' });
  r.after = [after._id, after.top];
  r.removed = c.findOneAndDelete({}, { sort: { _id: -1 } })._id;
  const key = { _id: 9001, date: day('2001-01-03'), origin: 'ORD' };
  r.upserted = c.updateOne(key, { $set: { delay: 1 } }, { upsert: true }).insertedId;
  const bulk = c.bulkWrite([
    { insertOne: { document: { ...key, _id: 9002, delay: 2 } } },
    { updateOne: { filter: { _id: 7 }, update: { $set: { bulk: true } } } },
    { deleteOne: { filter: { _id: 8 } } },
  ], { ordered: false });
  r.bulk = [bulk.insertedCount, bulk.modifiedCount, bulk.deletedCount];
  const duplicate = caught(() => c.insertOne(docs[4]));
  r.duplicate = [duplicate.name, duplicate.code];
  const bulkDuplicate = caught(() => c.insertMany([docs[4], { ...key, _id: 9003, delay: 3 }], { ordered: false }));
  r.bulkDuplicate = [bulkDuplicate.name, bulkDuplicate.code, bulkDuplicate.result.insertedCount];
  r.delayed = c.countDocuments({ delay: { $gt: 60 } });
  r.estimated = c.estimatedDocumentCount();
  r.origins = c.distinct('origin').length;
  const [total] = c.aggregate([{ $group: { _id: null, n: { $sum: 1 }, delay: { $sum: '$delay' } } }]).toArray();
  r.total = [total.n, total.delay];
  const session = db.getMongo().startSession();
  const inside = session.getDatabase(db.getName()).getCollection(name);
  inside.insertOne({ ...key, _id: 9004, delay: 4 });
  r.session = inside.findOne({ _id: 9004 })._id;
  session.startTransaction();
  r.transaction = caught(() => inside.insertOne({ ...key, _id: 9005 })).code;
  caught(() => session.abortTransaction());
  session.endSession();
  r.unknown = caught(() => c.find({ a: { $nope: 1 } }).toArray()).code;
  r.collections = db.getCollectionNames().sort();
  r.database = db.getMongo().getDBNames().includes(db.getName());
  c.dropIndex('delay_1');
  r.left = c.getIndexes().length;
  c.drop();
  r.gone = db.getCollectionInfos({ name }).length;
  return r;
}

for (const database of databases) {
  const named = db.getSiblingDB(database);
  const results = phase === 'left' ? { left: named.flights.countDocuments({}) } : { figures: figures(named), own: own(named, name) };
  print(JSON.stringify(results));
}

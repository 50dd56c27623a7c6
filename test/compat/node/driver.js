// driver.js URI PHASE OWN DATABASE...: the Node.js driver. README.md says what the phases are and what a line of results holds.
'use strict';

const { MongoClient } = require('mongodb');
const { day, shanghai, flights, caught, shards, print, run } = require('./figures.js');

async function figures(db) {
  const c = db.collection('flights');
  const week = { date: { $gte: day('2001-01-15'), $lt: day('2001-01-22') } };
  const quakes = [];
  for (let d = 0; d < 8; d++) {
    quakes.push(await db.collection('quakes').countDocuments({ time: { $gte: shanghai(d), $lt: shanghai(d + 1) } }));
  }
  const busiest = await c.aggregate([
    { $match: week }, { $group: { _id: '$origin', n: { $sum: 1 } } }, { $sort: { n: -1, _id: 1 } }, { $limit: 3 },
  ]).toArray();
  const longest = await c.find().sort({ delay: -1 }).limit(3).project({ _id: 1 }).toArray();
  return {
    count: await c.countDocuments(),
    estimated: await c.estimatedDocumentCount(),
    day: await c.countDocuments({ date: { $gte: day('2001-01-15'), $lt: day('2001-01-16') } }),
    week: (await c.find(week).toArray()).length,
    explained: shards(await c.find(week).explain('queryPlanner')),
    busiest: busiest.map((g) => [g._id, g.n]),
    longest: longest.map((f) => f._id),
    quakes,
  };
}

async function own(client, db, name) {
  const c = db.collection(name);
  const docs = flights(300);
  const r = {};
  await c.drop();
  r.inserted = (await c.insertMany(docs)).insertedCount;
  r.found = (await c.find().toArray()).length;
  r.sum = 0;
  for await (const f of c.find({}, { batchSize: 7 })) r.sum += f._id;
  r.index = await c.createIndex({ delay: 1 });
  r.indexes = (await c.indexes()).map((i) => i.name);
  const byId = await c.updateOne({ _id: 5 }, { $inc: { delay: 1000 } });
  r.byId = [byId.matchedCount, byId.modifiedCount];
  r.many = (await c.updateMany({ origin: 'ORD' }, { $set: { seen: true } })).modifiedCount;
  const sixth = await c.findOne({ _id: 6 });
  r.replaced = (await c.replaceOne({ _id: 6 }, { date: sixth.date, origin: sixth.origin, delay: 2000 })).modifiedCount;
  const after = await c.findOneAndUpdate({ delay: { $gte: 1000 } }, { $set: { top: true } }, { sort: { delay: -1 }, returnDocument: 'after' });
  r.after = [after._id, after.top];
  r.removed = (await c.findOneAndDelete({}, { sort: { _id: -1 } }))._id;
  const key = { _id: 9001, date: day('2001-01-03'), origin: 'ORD' };
  r.upserted = (await c.updateOne(key, { $set: { delay: 1 } }, { upsert: true })).upsertedId;
  const bulk = await c.bulkWrite([
    { insertOne: { document: { ...key, _id: 9002, delay: 2 } } },
    { updateOne: { filter: { _id: 7 }, update: { $set: { bulk: true } } } },
    { deleteOne: { filter: { _id: 8 } } },
  ], { ordered: false });
  r.bulk = [bulk.insertedCount, bulk.modifiedCount, bulk.deletedCount];
  const duplicate = await caught(c.insertOne(docs[4]));
  r.duplicate = [duplicate.constructor.name, duplicate.code];
  const bulkDuplicate = await caught(c.insertMany([docs[4], { ...key, _id: 9003, delay: 3 }], { ordered: false }));
  r.bulkDuplicate = [bulkDuplicate.constructor.name, bulkDuplicate.code, bulkDuplicate.result.insertedCount];
  r.delayed = await c.countDocuments({ delay: { $gt: 60 } });
  r.estimated = await c.estimatedDocumentCount();
  r.origins = (await c.distinct('origin')).length;
  const [total] = await c.aggregate([{ $group: { _id: null, n: { $sum: 1 }, delay: { $sum: '$delay' } } }]).toArray();
  r.total = [total.n, total.delay];
  await client.withSession(async (session) => {
    await c.insertOne({ ...key, _id: 9004, delay: 4 }, { session });
    r.session = (await c.findOne({ _id: 9004 }, { session }))._id;
    session.startTransaction();
    r.transaction = (await caught(c.insertOne({ ...key, _id: 9005 }, { session }))).code;
    await caught(session.abortTransaction());
  });
  r.unknown = (await caught(c.find({ a: { $nope: 1 } }).toArray())).code;
  r.collections = (await db.listCollections().toArray()).map((i) => i.name).sort();
  r.database = (await client.db().admin().listDatabases()).databases.some((d) => d.name === db.databaseName);
  await c.dropIndex('delay_1');
  r.left = (await c.indexes()).length;
  await c.drop();
  r.gone = (await db.listCollections({ name }).toArray()).length;
  return r;
}

run(async () => {
  const [uri, phase, name, ...databases] = process.argv.slice(2);
  const client = await MongoClient.connect(uri);
  for (const database of databases) {
    const db = client.db(database);
    if (phase === 'left') {
      print({ left: await db.collection('flights').countDocuments() });
    } else {
      print({ figures: await figures(db), own: await own(client, db, name) });
    }
  }
  await client.close();
});

// mongoose.js URI PHASE OWN DATABASE...: Mongoose. README.md says what the phases are and what a line of results holds.
'use strict';

const mongoose = require('mongoose');
const { day, shanghai, flights, caught, shards, print, run } = require('./figures.js');

const flightFields = {
  _id: Number, date: { type: Date, required: true }, delay: Number, distance: Number, origin: String, destination: String,
  seen: Boolean, top: Boolean, bulk: Boolean,
};

async function figures(connection) {
  const options = { versionKey: false, autoCreate: false, autoIndex: false };
  const Flight = connection.model('Flight', new mongoose.Schema(flightFields, { ...options, collection: 'flights' }));
  const Quake = connection.model('Quake', new mongoose.Schema({ _id: String, time: Number }, { ...options, collection: 'quakes' }));
  const week = { date: { $gte: day('2001-01-15'), $lt: day('2001-01-22') } };
  const quakes = [];
  for (let d = 0; d < 8; d++) {
    quakes.push(await Quake.countDocuments({ time: { $gte: shanghai(d), $lt: shanghai(d + 1) } }));
  }
  const busiest = await Flight.aggregate().match(week).group({ _id: '$origin', n: { $sum: 1 } }).sort({ n: -1, _id: 1 }).limit(3);
  const longest = await Flight.find().sort('-delay').limit(3).select('_id').lean();
  return {
    count: await Flight.countDocuments(),
    estimated: await Flight.estimatedDocumentCount(),
    day: await Flight.countDocuments({ date: { $gte: day('2001-01-15'), $lt: day('2001-01-16') } }),
    week: (await Flight.find(week)).length,
    explained: shards(await Flight.find(week).explain('queryPlanner')),
    busiest: busiest.map((g) => [g._id, g.n]),
    longest: longest.map((f) => f._id),
    quakes,
  };
}

async function own(connection, name) {
  const schema = new mongoose.Schema(flightFields, { collection: name, versionKey: false, autoIndex: false, autoCreate: false });
  schema.index({ delay: 1 });
  const Own = connection.model('Own', schema);
  const docs = flights(300);
  const r = {};
  await Own.collection.drop();
  r.inserted = (await Own.insertMany(docs)).length;
  r.found = (await Own.find()).length;
  r.sum = 0;
  for await (const f of Own.find().cursor({ batchSize: 7 })) r.sum += f._id;
  await Own.createIndexes();
  r.indexes = (await Own.listIndexes()).map((i) => i.name);
  r.index = r.indexes[1];
  const byId = await Own.updateOne({ _id: 5 }, { $inc: { delay: 1000 } });
  r.byId = [byId.matchedCount, byId.modifiedCount];
  r.many = (await Own.updateMany({ origin: 'ORD' }, { seen: true })).modifiedCount;
  const sixth = await Own.findById(6);
  sixth.delay = 2000;
  r.replaced = (await sixth.save()).delay === 2000 ? 1 : 0;
  const after = await Own.findOneAndUpdate({ delay: { $gte: 1000 } }, { top: true }, { sort: { delay: -1 }, returnDocument: 'after' });
  r.after = [after._id, after.top];
  r.removed = (await Own.findOneAndDelete({}, { sort: { _id: -1 } }))._id;
  const key = { _id: 9001, date: day('2001-01-03'), origin: 'ORD' };
  r.upserted = (await Own.updateOne(key, { delay: 1 }, { upsert: true })).upsertedId;
  const bulk = await Own.bulkWrite([
    { insertOne: { document: { ...key, _id: 9002, delay: 2 } } },
    { updateOne: { filter: { _id: 7 }, update: { bulk: true } } },
    { deleteOne: { filter: { _id: 8 } } },
  ], { ordered: false });
  r.bulk = [bulk.insertedCount, bulk.modifiedCount, bulk.deletedCount];
  const duplicate = await caught(Own.create(docs[4]));
  r.duplicate = [duplicate.constructor.name, duplicate.code];
  const bulkDuplicate = await caught(Own.insertMany([docs[4], { ...key, _id: 9003, delay: 3 }], { ordered: false }));
  r.bulkDuplicate = [bulkDuplicate.constructor.name, bulkDuplicate.code, bulkDuplicate.result.insertedCount];
  r.delayed = await Own.countDocuments({ delay: { $gt: 60 } });
  r.estimated = await Own.estimatedDocumentCount();
  r.origins = (await Own.distinct('origin')).length;
  const [total] = await Own.aggregate([{ $group: { _id: null, n: { $sum: 1 }, delay: { $sum: '$delay' } } }]);
  r.total = [total.n, total.delay];
  const session = await connection.startSession();
  await Own.create([{ ...key, _id: 9004, delay: 4 }], { session });
  r.session = (await Own.findById(9004, null, { session }))._id;
  session.startTransaction();
  r.transaction = (await caught(Own.create([{ ...key, _id: 9005 }], { session }))).code;
  await caught(session.abortTransaction());
  await session.endSession();
  r.unknown = (await caught(Own.collection.find({ a: { $nope: 1 } }).toArray())).code;
  r.collections = (await connection.listCollections()).map((i) => i.name).sort();
  r.database = (await connection.listDatabases()).databases.some((d) => d.name === connection.name);
  await Own.collection.dropIndex('delay_1');
  r.left = (await Own.listIndexes()).length;
  await Own.collection.drop();
  r.gone = (await connection.db.listCollections({ name }).toArray()).length;
  return r;
}

run(async () => {
  const [uri, phase, name, ...databases] = process.argv.slice(2);
  for (const database of databases) {
    const connection = await mongoose.createConnection(uri, { dbName: database }).asPromise();
    if (phase === 'left') {
      print({ left: await connection.collection('flights').countDocuments() });
    } else {
      print({ figures: await figures(connection), own: await own(connection, name) });
    }
    await connection.close();
  }
});

// What the scripts for Node share: documents, instants and the line that carries a database's results.
'use strict';

const fs = require('fs');
const path = require('path');
const { BSON } = require('mongodb');

const day = (text) => new Date(text + 'T00:00:00Z');

// shanghai is midnight of a day of February 2018 in Asia/Shanghai, in milliseconds, as a JavaScript number.
const shanghai = (d) => Date.UTC(2018, 0, 31 + d, -8);

// flights returns the first n flights of the test data.
function flights(n) {
  const text = fs.readFileSync(path.join(__dirname, '../../data/flights.jsonl'), 'utf8');
  return text.split('\n', n).map((line) => BSON.EJSON.parse(line));
}

// caught returns the error that a promise is rejected with.
async function caught(promise) {
  try {
    await promise;
  } catch (e) {
    return e;
  }
  return { name: 'none' };
}

// shards are the partitions that an explained find concerns.
const shards = (explained) => (explained.queryPlanner.winningPlan.shards || []).map((s) => s.partition);

const print = (results) => console.log(JSON.stringify(results));

// run calls main and makes a failure of it the script's.
function run(main) {
  main().catch((e) => {
    console.error(e);
    process.exit(1);
  });
}

module.exports = { day, shanghai, flights, caught, shards, print, run };

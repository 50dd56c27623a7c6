"""driver.py URI PHASE OWN DATABASE...: pymongo. README.md says what the phases are and what a line of results holds."""

import itertools
import json
import os
import sys
from datetime import datetime, timedelta, timezone

import pymongo
from bson import json_util
from bson.int64 import Int64
from pymongo.errors import BulkWriteError, PyMongoError

FLIGHTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../data/flights.jsonl")


def shanghai(d):
    """Midnight of a day of February 2018 in Asia/Shanghai, in milliseconds."""
    at = datetime(2018, 1, 30, 16, tzinfo=timezone.utc) + timedelta(days=d)
    return Int64(at.timestamp() * 1000)


def flights(n):
    with open(FLIGHTS, encoding="utf-8") as lines:
        return [json_util.loads(line) for line in itertools.islice(lines, n)]


def caught(f, *args, **kwargs):
    try:
        f(*args, **kwargs)
    except PyMongoError as e:
        return e
    return None


def figures(db):
    c = db.flights
    week = {"date": {"$gte": datetime(2001, 1, 15), "$lt": datetime(2001, 1, 22)}}
    explained = c.find(week).explain()
    busiest = c.aggregate([
        {"$match": week}, {"$group": {"_id": "$origin", "n": {"$sum": 1}}}, {"$sort": {"n": -1, "_id": 1}}, {"$limit": 3},
    ])
    return {
        "count": c.count_documents({}),
        "estimated": c.estimated_document_count(),
        "day": c.count_documents({"date": {"$gte": datetime(2001, 1, 15), "$lt": datetime(2001, 1, 16)}}),
        "week": len(list(c.find(week))),
        "explained": [s["partition"] for s in explained["queryPlanner"]["winningPlan"].get("shards", [])],
        "busiest": [[g["_id"], g["n"]] for g in busiest],
        "longest": [f["_id"] for f in c.find({}, {"_id": 1}).sort("delay", pymongo.DESCENDING).limit(3)],
        "quakes": [db.quakes.count_documents({"time": {"$gte": shanghai(d), "$lt": shanghai(d + 1)}}) for d in range(8)],
    }


def own(client, db, name):
    c = db[name]
    docs = flights(300)
    r = {}
    c.drop()
    r["inserted"] = len(c.insert_many(docs).inserted_ids)
    r["found"] = len(list(c.find()))
    r["sum"] = sum(f["_id"] for f in c.find(batch_size=7))
    r["index"] = c.create_index("delay")
    r["indexes"] = [i["name"] for i in c.list_indexes()]
    by_id = c.update_one({"_id": 5}, {"$inc": {"delay": 1000}})
    r["byId"] = [by_id.matched_count, by_id.modified_count]
    r["many"] = c.update_many({"origin": "ORD"}, {"$set": {"seen": True}}).modified_count
    sixth = c.find_one({"_id": 6})
    r["replaced"] = c.replace_one({"_id": 6}, {"date": sixth["date"], "origin": sixth["origin"], "delay": 2000}).modified_count
    after = c.find_one_and_update({"delay": {"$gte": 1000}}, {"$set": {"top": True}}, sort=[("delay", -1)], return_document=True)
    r["after"] = [after["_id"], after["top"]]
    r["removed"] = c.find_one_and_delete({}, sort=[("_id", -1)])["_id"]
    key = {"_id": 9001, "date": datetime(2001, 1, 3), "origin": "ORD"}
    r["upserted"] = c.update_one(key, {"$set": {"delay": 1}}, upsert=True).upserted_id
    bulk = c.bulk_write([
        pymongo.InsertOne({**key, "_id": 9002, "delay": 2}),
        pymongo.UpdateOne({"_id": 7}, {"$set": {"bulk": True}}),
        pymongo.DeleteOne({"_id": 8}),
    ], ordered=False)
    r["bulk"] = [bulk.inserted_count, bulk.modified_count, bulk.deleted_count]
    duplicate = caught(c.insert_one, docs[4])
    r["duplicate"] = [type(duplicate).__name__, duplicate.code]
    several = caught(c.insert_many, [docs[4], {**key, "_id": 9003, "delay": 3}], ordered=False)
    assert isinstance(several, BulkWriteError), several
    r["bulkDuplicate"] = [type(several).__name__, several.details["writeErrors"][0]["code"], several.details["nInserted"]]
    r["delayed"] = c.count_documents({"delay": {"$gt": 60}})
    r["estimated"] = c.estimated_document_count()
    r["origins"] = len(c.distinct("origin"))
    total = next(c.aggregate([{"$group": {"_id": None, "n": {"$sum": 1}, "delay": {"$sum": "$delay"}}}]))
    r["total"] = [total["n"], total["delay"]]
    with client.start_session() as session:
        c.insert_one({**key, "_id": 9004, "delay": 4}, session=session)
        r["session"] = c.find_one({"_id": 9004}, session=session)["_id"]
        session.start_transaction()
        r["transaction"] = caught(c.insert_one, {**key, "_id": 9005}, session=session).code
        caught(session.abort_transaction)
    r["unknown"] = caught(lambda: list(c.find({"a": {"$nope": 1}}))).code
    r["collections"] = sorted(db.list_collection_names())
    r["database"] = db.name in client.list_database_names()
    c.drop_index("delay_1")
    r["left"] = len(list(c.list_indexes()))
    c.drop()
    r["gone"] = len(list(db.list_collections(filter={"name": name})))
    return r


def main(uri, phase, name, *databases):
    client = pymongo.MongoClient(uri)
    for database in databases:
        db = client[database]
        if phase == "left":
            results = {"left": db.flights.count_documents({})}
        else:
            results = {"figures": figures(db), "own": own(client, db, name)}
        print(json.dumps(results), flush=True)


main(*sys.argv[1:])

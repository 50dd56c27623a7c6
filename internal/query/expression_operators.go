package query

import (
	"time"
	"unicode/utf8"

	"oxbow/internal/bson"
)

// operatorNamed returns the builder of an operator that is built, nil for any other name.
func operatorNamed(name string) builder {
	for _, group := range []func(string) builder{logicOperator, arithmeticOperator, stringOperator, arrayOperator, objectOperator, dateOperator} {
		if b := group(name); b != nil {
			return b
		}
	}
	return nil
}

func logicOperator(name string) builder {
	switch name {
	case "$eq":
		return comparison(relEq)
	case "$ne":
		return comparison(relNe)
	case "$gt":
		return comparison(relGt)
	case "$gte":
		return comparison(relGte)
	case "$lt":
		return comparison(relLt)
	case "$lte":
		return comparison(relLte)
	case "$cmp":
		return comparison(relCmp)
	case "$and":
		return junction(false)
	case "$or":
		return junction(true)
	case "$not":
		return unary(evalNot)
	case "$cond":
		return buildCond
	case "$switch":
		return buildSwitch
	case "$ifNull":
		return buildIfNull
	case "$let":
		return buildLet
	case "$literal", "$const":
		return buildLiteral
	}
	return nil
}

func arithmeticOperator(name string) builder {
	switch name {
	case "$add":
		return nary(0, unbounded, evalAdd)
	case "$subtract":
		return dyadic(evalSubtract)
	case "$multiply":
		return nary(0, unbounded, evalMultiply)
	case "$divide":
		return dyadic(evalDivide)
	case "$mod":
		return dyadic(evalMod)
	case "$abs":
		return numeric(name, evalAbs)
	case "$ceil":
		return numeric(name, toWhole(bson.Number.Ceil))
	case "$floor":
		return numeric(name, toWhole(bson.Number.Floor))
	case "$round":
		return nary(1, 2, toPlaces(name, bson.Number.Round))
	case "$trunc":
		return nary(1, 2, toPlaces(name, bson.Number.Trunc))
	case "$sqrt":
		return numeric(name, evalSqrt)
	case "$pow":
		return dyadic(evalPow)
	case "$exp":
		return numeric(name, evalExp)
	case "$ln":
		return logarithm(name, 28766, bson.Number.Ln)
	case "$log10":
		return logarithm(name, 28761, bson.Number.Log10)
	case "$log":
		return dyadic(evalLog)
	case "$sum":
		return nary(0, unbounded, evalSum)
	case "$avg":
		return nary(0, unbounded, evalAvg)
	case "$min":
		return nary(0, unbounded, extremum(1))
	case "$max":
		return nary(0, unbounded, extremum(-1))
	case "$stdDevPop":
		return nary(0, unbounded, deviationOf(false))
	case "$stdDevSamp":
		return nary(0, unbounded, deviationOf(true))
	}
	return nil
}

func stringOperator(name string) builder {
	switch name {
	case "$concat":
		return nary(0, unbounded, evalConcat)
	case "$substr", "$substrBytes":
		return nary(3, 3, evalSubstrBytes)
	case "$substrCP":
		return nary(3, 3, evalSubstrCP)
	case "$toLower":
		return unary(changeCase('A', 'a'))
	case "$toUpper":
		return unary(changeCase('a', 'A'))
	case "$strcasecmp":
		return dyadic(evalStrcasecmp)
	case "$strLenBytes":
		return length(name, 34473, func(b []byte) int { return len(b) })
	case "$strLenCP":
		return length(name, 34471, utf8.RuneCount)
	case "$split":
		return dyadic(evalSplit)
	case "$trim":
		return trim(true, true)
	case "$ltrim":
		return trim(true, false)
	case "$rtrim":
		return trim(false, true)
	case "$indexOfBytes":
		return indexOf(name, 40091, false)
	case "$indexOfCP":
		return indexOf(name, 40093, true)
	case "$regexMatch":
		return buildRegex(valueFalse, regexMatch)
	case "$regexFind":
		return buildRegex(bson.Null, regexFind)
	case "$regexFindAll":
		return buildRegex(emptyArray, regexFindAll)
	case "$replaceOne":
		return replace(1)
	case "$replaceAll":
		return replace(0)
	}
	return nil
}

func arrayOperator(name string) builder {
	switch name {
	case "$arrayElemAt":
		return dyadic(evalArrayElemAt)
	case "$first":
		return end(name, 0)
	case "$last":
		return end(name, -1)
	case "$size":
		return unary(evalSize)
	case "$isArray":
		return unary(evalIsArray)
	case "$slice":
		return nary(2, 3, evalSlice)
	case "$concatArrays":
		return nary(0, unbounded, evalConcatArrays)
	case "$in":
		return buildIn
	case "$indexOfArray":
		return nary(2, 4, evalIndexOfArray)
	case "$reverseArray":
		return unary(evalReverseArray)
	case "$range":
		return nary(2, 3, evalRange)
	case "$zip":
		return buildZip
	case "$map":
		return buildMap
	case "$filter":
		return buildFilter
	case "$reduce":
		return buildReduce
	case "$sortArray":
		return buildSortArray
	case "$setUnion":
		return nary(0, unbounded, evalSetUnion)
	case "$setIntersection":
		return nary(0, unbounded, evalSetIntersection)
	case "$setDifference":
		return nary(2, 2, evalSetDifference)
	case "$setEquals":
		return buildSetEquals
	case "$setIsSubset":
		return nary(2, 2, evalSetIsSubset)
	case "$anyElementTrue":
		return elementsTrue(name, 17041, true)
	case "$allElementsTrue":
		return elementsTrue(name, 17040, false)
	}
	return nil
}

func objectOperator(name string) builder {
	switch name {
	case "$arrayToObject":
		return unary(evalArrayToObject)
	case "$objectToArray":
		return unary(evalObjectToArray)
	case "$mergeObjects":
		return nary(0, unbounded, evalMergeObjects)
	case "$getField":
		return buildGetField
	case "$setField", "$unsetField":
		return buildSetField
	case "$type":
		return unary(evalType)
	case "$isNumber":
		return unary(evalIsNumber)
	case "$convert":
		return buildConvert
	case "$toString":
		return conversion(bson.TypeString)
	case "$toInt":
		return conversion(bson.TypeInt32)
	case "$toLong":
		return conversion(bson.TypeInt64)
	case "$toDouble":
		return conversion(bson.TypeDouble)
	case "$toDecimal":
		return conversion(bson.TypeDecimal128)
	case "$toBool":
		return conversion(bson.TypeBoolean)
	case "$toDate":
		return conversion(bson.TypeDateTime)
	case "$toObjectId":
		return conversion(bson.TypeObjectID)
	}
	return nil
}

func dateOperator(name string) builder {
	switch name {
	case "$year":
		return datePart(time.Time.Year)
	case "$month":
		return datePart(func(t time.Time) int { return int(t.Month()) })
	case "$dayOfMonth":
		return datePart(time.Time.Day)
	case "$dayOfYear":
		return datePart(time.Time.YearDay)
	case "$dayOfWeek":
		return datePart(func(t time.Time) int { return int(t.Weekday()) + 1 })
	case "$hour":
		return datePart(time.Time.Hour)
	case "$minute":
		return datePart(time.Time.Minute)
	case "$second":
		return datePart(time.Time.Second)
	case "$millisecond":
		return datePart(milliOfSecond)
	case "$week":
		return datePart(weekOfYear)
	case "$isoWeek":
		return datePart(isoWeek)
	case "$isoWeekYear":
		return datePartOf(isoYear, true)
	case "$isoDayOfWeek":
		return datePart(isoDay)
	case "$dateToParts":
		return buildDateToParts
	case "$dateFromParts":
		return buildDateFromParts
	case "$dateToString":
		return buildDateToString
	case "$dateFromString":
		return buildDateFromString
	case "$dateTrunc":
		return dateMath(evalDateTrunc, 5439007, 5439008, 5439009, []string{"date", "unit"}, "binSize", "timezone", "startOfWeek")
	case "$dateAdd":
		return dateMath(shift(1), 5166400, 5166401, 5166402, []string{"startDate", "unit", "amount"}, "timezone")
	case "$dateSubtract":
		return dateMath(shift(-1), 5166400, 5166401, 5166402, []string{"startDate", "unit", "amount"}, "timezone")
	case "$dateDiff":
		return dateMath(evalDateDiff, 5166301, 5166302, 5166303, []string{"startDate", "endDate", "unit"}, "timezone", "startOfWeek")
	}
	return nil
}

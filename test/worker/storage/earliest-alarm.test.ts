import { expect, test } from 'vitest'
import { EarliestAlarm } from '../../../src/worker/storage/earliest-alarm.ts'

function open() {
  const attempts: number[] = []
  const failures: Error[] = []
  const alarm = new EarliestAlarm(async (time) => {
    attempts.push(time)
    const failure = failures.shift()
    if (failure !== undefined) throw failure
  })
  return { alarm, attempts, failures }
}

test('an alarm is set to the earliest time that was asked for, until it goes off', async () => {
  const { alarm, attempts } = open()
  for (const time of [20, 30, 10, 10]) await alarm.schedule(time)
  expect(attempts).toEqual([20, 10])
  alarm.wentOff()
  await alarm.schedule(40)
  expect(attempts).toEqual([20, 10, 40])
})

test('an alarm that was set before the instance began is kept where it is early enough', async () => {
  const { alarm, attempts } = open()
  alarm.isAlready(20)
  await alarm.schedule(30)
  await alarm.schedule(15)
  expect(attempts).toEqual([15])
})

test.each([
  ['set to another time where it was set before', 20, 30, [30]],
  ['not set where it was not before', null, 30, [40]],
  ['kept where no other time is given', 20, undefined, []],
])('an alarm is %s', async (_what, before, again, set) => {
  const { alarm, attempts } = open()
  await alarm.resume(before, again)
  await alarm.schedule(40)
  expect(attempts).toEqual(set)
})

test('an instance begins also where its alarm cannot be set again, and the next call sets it', async () => {
  const { alarm, attempts, failures } = open()
  failures.push(new Error('the disk is full'))
  await alarm.resume(20, 30)
  await alarm.schedule(40)
  expect(attempts).toEqual([30, 30])
})

test('an alarm that could not be set is set by the next call, to the earliest time of both', async () => {
  const { alarm, attempts, failures } = open()
  failures.push(new Error('the disk is full'), new Error('still full'))
  await expect(alarm.schedule(20)).rejects.toThrow('the disk is full')
  await expect(alarm.schedule(30)).rejects.toThrow('still full')
  await alarm.schedule(30)
  await alarm.schedule(30)
  expect(attempts).toEqual([20, 20, 20])
})

test('a write is not failed by an alarm that could not be set, and the next one sets it', async () => {
  const { alarm, attempts, failures } = open()
  failures.push(new Error('the disk is full'))
  await alarm.scheduleAfterWrite(20)
  await alarm.scheduleAfterWrite(30)
  await alarm.scheduleAfterWrite(30)
  expect(attempts).toEqual([20, 20])
})

test('a later time that is asked for while the alarm is being set does not take its place', async () => {
  const { alarm, attempts } = open()
  await Promise.all([alarm.schedule(10), alarm.schedule(20)])
  expect(attempts).toEqual([10])
})

import { EventEmitter } from 'node:events'
import { expect, test } from 'vitest'
import { HeldSignals } from '../../src/cli/held-signals.ts'

test('what signals ask for before somebody acts on them is done once, when somebody does', () => {
  const source = new EventEmitter()
  const held = new HeldSignals(source, ['SIGHUP', 'SIGUSR2'])
  const done: string[] = []
  source.emit('SIGHUP')
  source.emit('SIGHUP')
  held.take('SIGUSR2', () => done.push('key'))
  expect(done).toEqual([])
  held.take('SIGHUP', () => done.push('reload'))
  expect(done).toEqual(['reload'])
  source.emit('SIGHUP')
  source.emit('SIGUSR2')
  expect(done).toEqual(['reload', 'reload', 'key'])
})

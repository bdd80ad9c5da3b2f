import { expect, test } from 'vitest'
import { readLocalFile } from '../../../src/host/stack/local-file.ts'
import { StartError } from '../../../src/host/stack/start-error.ts'

test('whoever looks for a local router where none runs is told how to start one, or to name its place', () => {
  const read = () => readLocalFile('/nowhere')
  expect(read).toThrow(StartError)
  expect(read).toThrow(
    'no router is running here: /nowhere/local.json is missing or not readable; start one with "npm start", or name its state directory in STATE_DIR',
  )
})

import { syncBuiltinESMExports } from 'node:module'
import threads, { type WorkerOptions } from 'node:worker_threads'

/**
 * Loaded into a daemon (`NODE_OPTIONS=--import=…`): its carriers then run `mortal-carrier.ts`, which ends as a test orders
 * in the file `CARRIER_ORDERS`, with little memory so that they run out of it soon. Every other thread is as ever.
 */
const CARRIER = /\/carrier-thread\.ts$/
const HEAP_MB = 64
/**
 * A thread that is being ended may exceed its limit by a little. A young generation of the usual size, all of it moved into
 * the old one at once, is more, and V8 then ends the whole process.
 */
const YOUNG_MB = 4

const { Worker } = threads
const orders = process.env['CARRIER_ORDERS']

class MortalWorker extends Worker {
  constructor(program: string | URL, options: WorkerOptions = {}) {
    if (orders === undefined || !CARRIER.test(String(program))) {
      super(program, options)
      return
    }
    super(new URL('mortal-carrier.ts', import.meta.url), {
      ...options,
      env: { CARRIER_ORDERS: orders },
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: YOUNG_MB },
    })
  }
}

threads.Worker = MortalWorker
syncBuiltinESMExports()

import { program } from 'commander'
import { processTable } from '../test/load/print.ts'
import { slowStreams } from '../test/load/slow-streams.ts'
import { checkRuntime } from '../src/host/stack/runtime-check.ts'

/**
 * `npm run load [-- --streams 1000 --seconds 30 --customers 100]`: concurrent slow streams against the real stack.
 * Prints the resources of the processes and the state of the ledger; the exit status is 1 if a stream, a row or a
 * receipt was lost, or if memory or file descriptors exceeded their limits.
 */
const wholeNumber = (text: string) => Number.parseInt(text, 10)

checkRuntime()
program
  .option('--streams <n>', 'how many streams', wholeNumber, 1_000)
  .option('--seconds <n>', 'how long all of them run', wholeNumber, 30)
  .option('--customers <n>', 'how many customers they belong to', wholeNumber, 100)
  .parse()
const plan = program.opts<{ streams: number; seconds: number; customers: number }>()

const { faults, ledger, concurrent, openingSeconds, processes, counted } = await slowStreams(plan)
console.log(`${concurrent} streams at one time, all begun within ${openingSeconds.toFixed(1)} s`)
console.log(`${ledger.rows} rows, ${ledger.receipts} receipts\n`)
for (const line of processTable(processes)) console.log(line)
for (const line of counted) console.log(line)
for (const fault of faults.slice(0, 50)) console.log(`FAULT  ${fault}`)
process.exit(faults.length === 0 ? 0 : 1)

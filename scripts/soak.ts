import { program } from 'commander'
import { processTable } from '../test/load/print.ts'
import { soak } from '../test/load/soak.ts'
import { checkRuntime } from '../src/host/stack/runtime-check.ts'

/**
 * `npm run soak [-- --minutes 10 --clients 40 --customers 20 --seed 1]`: a mixed load with injected faults against the
 * real stack. Prints the operations, the resources of the processes and the state of the ledger; the exit status is 1
 * if the ledger does not balance, memory has grown or a process has died.
 */
const number = (text: string) => Number(text)

checkRuntime()
program
  .option('--minutes <n>', 'how long', number, 10)
  .option('--clients <n>', 'how many clients at one time', number, 40)
  .option('--customers <n>', 'how many customers they belong to', number, 20)
  .option('--seed <n>', 'what chance begins with', number, 1)
  .parse()
const plan = program.opts<{ minutes: number; clients: number; customers: number; seed: number }>()

const { faults, done, ledger, processes, counted } = await soak(plan)
for (const what of [...done.keys()].toSorted((a, b) => a.localeCompare(b))) {
  console.log(`${String(done.get(what)).padStart(7)}  ${what}`)
}
console.log(`\n${ledger.rows} rows, ${ledger.receipts} receipts\n`)
for (const line of [...processTable(processes), ...counted]) console.log(line)
for (const fault of faults.slice(0, 50)) console.log(`FAULT  ${fault}`)
process.exit(faults.length === 0 ? 0 : 1)

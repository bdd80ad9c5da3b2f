import { program } from 'commander'
import { fuzz } from '../test/fuzz/run.ts'

/**
 * `npm run fuzz [-- --requests 20000 --seed 1]`: sends generated requests to the real stack. No answer may be an
 * internal error of the router, no request may hang, and no process may end. Prints a summary of the answers; the exit
 * status is 1 if anything went wrong. The same seed makes the same requests.
 */
const wholeNumber = (text: string) => Number.parseInt(text, 10)

program
  .option('--requests <n>', 'how many requests to send', wholeNumber, 20_000)
  .option('--seed <n>', 'what to generate them from', wholeNumber, Date.now() % 1_000_000)
  .parse()
const options = program.opts<{ requests: number; seed: number }>()

console.log(`seed ${options.seed}\n`)
const begun = performance.now()
const report = await fuzz({
  ...options,
  progress: (done) => process.stderr.isTTY && process.stderr.write(`\r${done}`),
})
for (const answer of [...report.answers.keys()].toSorted((a, b) => a.localeCompare(b))) {
  console.log(`${String(report.answers.get(answer)).padStart(7)}  ${answer}`)
}
const seconds = Math.round((performance.now() - begun) / 1000)
console.log(`\n${report.reachedProvider} reached the provider; ${seconds} s`)
for (const fault of report.faults) console.log(`FAULT  ${fault}`)
process.exit(report.faults.length === 0 ? 0 : 1)

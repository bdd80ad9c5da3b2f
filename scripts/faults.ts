import { program } from 'commander'
import { FAMILIES } from '../test/faults/families.ts'
import { setup } from '../test/support/simulated-platform.ts'

/**
 * `npm run faults [-- <family> [<case>]]`: runs the fault matrix, or the families and cases with these words in their
 * names, against the real stack and prints it case by case, with what was expected and what was seen. The status is 1
 * if they differ in any case.
 */
async function main(only = '', named = ''): Promise<number> {
  let failures = 0
  let cases = 0
  for (const { name, run } of FAMILIES.filter((family) => family.name.includes(only))) {
    console.log(`\n${name}\n`)
    const begun = performance.now()
    const verdicts = await run({ short: false, named })
    for (const { trial, expected, seen } of verdicts) {
      console.log(`${seen === expected ? ' ok ' : 'FAIL'}  ${trial}`)
      console.log(`        expected  ${expected}\n        seen      ${seen}`)
      if (seen !== expected) failures += 1
    }
    cases += verdicts.length
    console.log(`\n${verdicts.length} cases, ${Math.round(performance.now() - begun) / 1000} s`)
  }
  console.log(`\n${cases - failures} as expected, ${failures} not`)
  return failures === 0 ? 0 : 1
}

program
  .name('faults')
  .description('Run the fault matrix against the real stack and print it case by case.')
  .argument('[family]', 'only the families with this in their names')
  .argument('[case]', 'only the cases with this in their names')
  .parse()
const [family, named] = program.args
// The families over pinned egress have a provider on the same simulated platform.
const removePlatform = await setup()
const status = await main(family, named)
removePlatform()
process.exit(status)

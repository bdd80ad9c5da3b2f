import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, test } from 'vitest'
import { configJsonSchema } from '../../../scripts/schema/config-json-schema.ts'
import { PROJECT_DIR } from '../../../src/host/stack/settings.ts'

function read(path: string): unknown {
  return JSON.parse(readFileSync(join(PROJECT_DIR, path), 'utf8'))
}

describe('the published JSON Schema', () => {
  test('is that of the code ("npm run schema" writes it)', () => {
    expect(read('config/router.schema.json')).toEqual(
      JSON.parse(JSON.stringify(configJsonSchema())),
    )
  })

  test('accepts the configurations of this repository and refuses a slip', () => {
    const validate = new Ajv2020({ strict: false, formats: { uri: true, email: true } }).compile(
      configJsonSchema(),
    )
    for (const file of ['config/local.json', 'config/production.example.json']) {
      expect([file, validate(read(file)), validate.errors]).toEqual([file, true, null])
    }
    expect(
      validate({ service: { name: 'r', reciept_retention_days: 1 }, providers: {}, routes: [] }),
    ).toBe(false)
  })

  test('has every member explained in docs/configuration.md', () => {
    const text = readFileSync(join(PROJECT_DIR, 'docs/configuration.md'), 'utf8')
    const unexplained = [...memberNames(configJsonSchema())].filter(
      (name) => !text.includes(`\`${name}\``),
    )
    expect(unexplained).toEqual([])
  })
})

/** The names of all members that the schema knows anywhere. */
function memberNames(schema: unknown): Set<string> {
  const names = new Set<string>()
  const visit = (node: unknown) => {
    if (typeof node !== 'object' || node === null) return
    for (const [key, value] of Object.entries(node)) {
      if (key === 'properties' && typeof value === 'object' && value !== null) {
        for (const name of Object.keys(value)) names.add(name)
      }
      visit(value)
    }
  }
  visit(schema)
  return names
}

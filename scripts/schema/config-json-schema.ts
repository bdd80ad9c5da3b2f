import { z } from 'zod'
import { configSchema } from '../../src/protocol/config.ts'

/**
 * The JSON Schema (draft 2020-12) of a configuration file, before defaults are filled in. It does not include rules
 * that span several members (src/protocol/config-rules.ts).
 */
export function configJsonSchema(): object {
  const { $schema, ...schema } = z.toJSONSchema(configSchema, { io: 'input' })
  return {
    $schema,
    title: 'Confidential Model Router: configuration',
    description: 'docs/configuration.md explains every member.',
    ...schema,
  }
}

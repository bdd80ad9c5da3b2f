import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { configJsonSchema } from './schema/config-json-schema.ts'
import { PROJECT_DIR } from '../src/host/stack/settings.ts'

/** `npm run schema`: writes the JSON Schema of the configuration, for editors and other tools. */
const file = join(PROJECT_DIR, 'config/router.schema.json')
writeFileSync(file, `${JSON.stringify(configJsonSchema(), null, 2)}\n`)

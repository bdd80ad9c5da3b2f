import * as z from 'zod'

/**
 * Pages refuse functions made of text by their content security policy, and zod tries one for each schema. Imported
 * before everything that has schemas.
 */
z.config({ jitless: true })

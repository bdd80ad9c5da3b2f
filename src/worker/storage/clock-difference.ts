/**
 * By how much the clocks of routers on one database may differ, ms. A time that is further ahead was written before the clock was
 * set back.
 */
export const CLOCKS_DIFFER_MS = 60_000

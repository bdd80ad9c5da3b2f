/** Text that is part of each function of the second version. */

/**
 * Settings that make PostgreSQL find rows by their indexes whatever the size of the tables was when it made a query plan,
 * which it caches: joins are nested loops. Do not use EXISTS with these settings, because PostgreSQL may answer it by
 * reading a whole table.
 */
export const FLAT_PLANS = `SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan`

/** Makes the commit wait for the disk even where the database's default is not to; stronger settings are kept. */
export const WAIT_FOR_DISK = `IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;`

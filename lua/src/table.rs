// The scripts: what each is for, its constant, its file, and the shared parts that come before it. The crate makes
// constants of this table, and the build script what they hold.
scripts! {
    "Accepts jobs." PUBLISH "publish": "put" "plain/publish" "base" "rest" "meta" "state" "agenda" "changes" "session" "sweep";
    "Grants leases." RESERVE "reserve": "put" "plain/reserve" "base" "rest" "meta" "state" "agenda" "changes" "lease" "reap" "sift" "session" "sweep";
    "Ends leases with verdicts." SETTLE "settle": "put" "plain/settle" "base" "rest" "meta" "state" "agenda" "changes" "lease";
    "Renews leases." EXTEND "extend": "put" "plain/extend" "base" "rest" "meta" "state" "agenda" "changes";
    "Takes waiting jobs away." CANCEL "cancel": "base" "meta" "state" "agenda" "changes" "session" "sweep";
    "Gives waiting jobs another due time." RESCHEDULE "reschedule": "base" "meta" "state" "agenda" "changes" "session" "sweep";
    "Reads a shard's agenda and takes its lease." PEEK "peek": "base";
    "Does what must happen in a queue." TEND "tend": "base" "meta" "state" "agenda" "changes" "lease" "reap" "sift" "sweep";
    "Makes dead letters due." REQUEUE "requeue": "base" "meta" "state" "agenda" "changes" "dead";
    "Removes dead letters." PURGE "purge": "base" "meta" "state" "agenda" "changes" "dead";
    "Replaces a queue's config." CONFIGURE "configure": "base" "meta" "agenda" "config";
    "Pauses and resumes a queue." PAUSE "pause": "base" "meta" "agenda" "config";
    "Removes a queue." DESTROY "destroy": "base" "meta";
    "Reads one job." INSPECT "inspect": "base" "meta" "state";
    "Reads jobs page by page." LIST "list": "base" "meta" "state" "agenda" "changes" "sift";
    "Reads a queue's config, counters and sizes." STATS "stats": "base" "meta" "config";
    "Fixes or reads a deployment's layout." OPEN "open":;
}

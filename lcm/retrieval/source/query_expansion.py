"""More words for the lexical branch: what an engineer's report of a fault also calls itself."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TABLE = (
    ("挂了 挂掉 宕机", ("shutdown", "crashed"), "崩溃 crash error 报错 宕机 失败"),
    ("卡住 卡死 没反应", ("hung", "frozen"), "hang timeout 超时 无响应 stuck"),
    ("炸了 爆了", ("oom",), "崩溃 crash OOM 内存溢出 error"),
    ("配置 设置", ("config", "configuration"), "配置 config configuration settings 设置"),
    ("部署 上线", ("deploy", "deployment"), "deploy 部署 上线 发布 release"),
    ("容器", ("docker", "container"), "Docker 容器 container docker-compose"),
    ("报错 出错 错误", ("error", "exception"), "error 报错 exception 错误 失败 bug"),
    ("修复 修了 修好", ("bugfix", "hotfix"), "fix 修复 patch 解决"),
    ("踩坑", ("troubleshoot",), "踩坑 bug 问题 教训 排查 troubleshoot"),
    ("记忆 记忆系统", ("memory",), "记忆 memory 记忆系统 LanceDB 索引"),
    ("搜索 查找 找不到", ("search", "retrieval"), "搜索 search retrieval 检索 查找"),
    ("推送", ("git push",), "push|推送|git push|commit"),
    ("日志", ("logfile", "logging"), "日志 log logging 输出 打印"),
    ("权限", ("permission", "authorization"), "权限 permission access 授权 认证"),
)
"""Groups of words that engineers use for the same thing: Chinese triggers, English triggers, synonyms in order.

Source: memory-lancedb-pro, query-expander; simplified Chinese and English only.
"""

GROUPS = tuple(
    (tuple(chinese.split()), english, tuple(synonyms.split("|") if "|" in synonyms else synonyms.split()))
    for chinese, english, synonyms in _TABLE
)


_SHORTEST = 2


@dataclass(frozen=True, slots=True)
class QueryExpansion:
    """Append the synonyms of each group that the query triggers, in order, until `most` are added.

    A group is triggered by one of its Chinese words anywhere in the query, or by one of its English words between
    word boundaries. What the query says already is not added.

    Source: memory-lancedb-pro, query-expander.
    """

    callers: Sequence[str] = ("manual", "cli")
    """Whose queries are expanded."""
    most: int = 5
    """Synonyms added to one query."""

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ValueError(f"most must be >= 1, got {self.most}: leave expansion out with expansion=null")

    def expand(self, text: str, caller: str) -> str:
        if caller not in self.callers or len(text.strip()) < _SHORTEST:
            return text
        lowered = text.lower()
        added: list[str] = []
        for chinese, english, synonyms in GROUPS:
            if any(word in lowered for word in chinese) or any(_says(text, word) for word in english):
                for synonym in synonyms:
                    if synonym.lower() not in lowered and synonym not in added:
                        added.append(synonym)
                        if len(added) == self.most:
                            return f"{text} {' '.join(added)}"
        return f"{text} {' '.join(added)}" if added else text


def _says(text: str, word: str) -> bool:
    return re.search(rf"\b{re.escape(word)}\b", text, re.ASCII | re.IGNORECASE) is not None
